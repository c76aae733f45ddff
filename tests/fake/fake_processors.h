/* SPDX-License-Identifier: MIT */
/*
 * Fake processors - the time that workers get of them, wait for them, and leave
 * them idle.
 */
#ifndef WEFT_TESTS_FAKE_FAKE_PROCESSORS_H
#define WEFT_TESTS_FAKE_FAKE_PROCESSORS_H

#include <stdint.h>

#include "tests/fake/fake_run.h"

struct fake_processors {
	uint64_t waited_ns; /* each worker, for a processor */
	uint64_t share_ns;  /* each that computes has had so much of one */
	uint64_t idle_ns;
	unsigned idle_part; /* thousandths of the time */
	unsigned computing; /* workers, one within another */
	const struct fake_config *config;
};

/* Some worker runs for so long. */
static inline void fake_processors_wait(struct fake_processors *p,
					struct weft_runtime *runtime,
					uint64_t length_ns)
{
	unsigned count = p->config->processors;

	/* relaxed: one thread. */
	if (count && !p->config->shares && runtime &&
	    weft__load(&runtime->worker_limit.max, relaxed) > count)
		p->waited_ns += length_ns;
}

/* Time passes. */
static inline void fake_processors_pass(struct fake_processors *p,
					uint64_t length_ns)
{
	unsigned computing = p->computing + p->config->others;
	unsigned count = p->config->processors;
	uint64_t share_ns = length_ns;

	/* Rounded up: it must grow. */
	if (p->config->shares && count && computing > count)
		share_ns = (length_ns * count + computing - 1) / computing;
	p->share_ns += share_ns;
	p->waited_ns += length_ns - share_ns;
	p->idle_ns += length_ns * p->idle_part / 1000;
}

#endif

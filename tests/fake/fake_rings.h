/* SPDX-License-Identifier: MIT */
/*
 * Fake rings - what completes for tasks, each through the ring of one worker.
 */
#ifndef WEFT_TESTS_FAKE_FAKE_RINGS_H
#define WEFT_TESTS_FAKE_FAKE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sched/worker.h"

enum { FAKE_COMPLETIONS_MAX = 64 };

struct fake_completion {
	uint64_t at_ns;
	uint32_t ring; /* whose */
	struct weft__task *task;
	uint64_t id;
	bool *done; /* set when it is taken */
};

/* Of all workers. */
struct fake_rings {
	struct fake_completion completions[FAKE_COMPLETIONS_MAX];
	unsigned count;
};

void fake_rings_add(struct fake_rings *rings, struct fake_completion added);

/* When the first one comes that a ring has; UINT64_MAX: there is none. */
uint64_t fake_rings_next(const struct fake_rings *rings, uint32_t ring);

/* Makes ready on this worker what a ring has completed by now.  Returns how
 * many tasks. */
unsigned fake_rings_take(struct fake_rings *rings, struct weft__worker *worker,
			 uint32_t ring, uint64_t now_ns);

#endif

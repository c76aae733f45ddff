/* SPDX-License-Identifier: MIT */
/*
 * Shared by tests of the limit of running workers: background tasks, which
 * wake all the time as if through completions, and tests that run among them.
 */
#ifndef WEFT_TESTS_FAKE_LIMIT_KIT_H
#define WEFT_TESTS_FAKE_LIMIT_KIT_H

#include <weft/weft.h>

#include "runtime/sched/worker_limit.h"
#include "tests/fake/fake_check.h"

enum { OTHERS = 24 };

/* Set: the background tasks end. */
static bool over;

/* The completions come through either ring. */
static inline int64_t receive_and_compute(uint64_t receive_ns,
					  uint64_t compute_ns)
{
	while (!over) {
		unsigned ring = (unsigned)fake_random(2);

		fake_receive(ring, 1 + fake_random(receive_ns));
		fake_compute(compute_ns);
	}
	return 0;
}

/* More work than one worker can do: each tick ends before the worker has run
 * all of it.  On half a processor such runs are still short. */
static inline int64_t receive_much(void *arg)
{
	(void)arg;
	return receive_and_compute(WEFT_US(10), WEFT_US(30));
}

static inline uint32_t most(void)
{
	/* relaxed: one thread. */
	return weft__load(&fake_runtime()->worker_limit.max, relaxed);
}

static inline struct fake_config limit_config(int i, unsigned workers,
				       unsigned processors)
{
	over = false;
	return (struct fake_config){
		.seed = seed_of(i),
		.workers = workers,
		.processors = processors,
	};
}

/* Defines the body of a test that runs among OTHERS background tasks. */
#define AMONG(others, name)                                                \
	static void name##_body(void);                                     \
	static int64_t name##_main(void *arg)                              \
	{                                                                  \
		(void)arg;                                                 \
		WEFT_SCOPE(all, NULL) {                                    \
			for (int i = 0; i < OTHERS; i++)                   \
				EXPECT(weft_go(all, others, NULL, 0) ==    \
				       0);                                 \
			name##_body();                                     \
			over = true;                                       \
		}                                                          \
		return 0;                                                  \
	}                                                                  \
	static void name##_body(void)

#endif

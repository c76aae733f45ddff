/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the suites of locks, of flags and of their cancellation share.
 *
 * A task that has to queue in a certain order comes a millisecond after the one
 * before: time is virtual, so everything else has been done by then.
 */
#ifndef WEFT_TESTS_SUPPORT_SYNC_SCENE_H
#define WEFT_TESTS_SUPPORT_SYNC_SCENE_H

#include <errno.h>

#include "tests/support/sched_scene.h"

/* With peers that go on while a task computes. */
static inline struct fake_result run_with_peers(int i, weft_fn main_fn)
{
	struct fake_config config = {
		.seed = seed_of(i),
		.workers = 2 + (unsigned)i % 3,
		.budgets_vary = i >= 8,
	};

	return must_run(&config, main_fn, NULL);
}

/* Takes its time, in one of the ways there are. */
static inline void dwell(void)
{
	switch (fake_random(4)) {
	case 0:
		return;
	case 1:
		EXPECT(weft_yield() == 0);
		return;
	case 2:
		fake_compute(fake_random(20000));
		return;
	default:
		EXPECT(weft_sleep(1 + fake_random(50000)) == 0);
	}
}

/* Without a suspension, while others go on.  A peer takes a task out of this
 * worker's slot once the worker is late. */
#define compute_until(condition)                    \
	do {                                        \
		int turns_left = 1000;              \
                                                    \
		while (!(condition)) {              \
			EXPECT(turns_left-- > 0);   \
			fake_compute(WEFT_US(100)); \
		}                                   \
	} while (0)

/* A point in time that has just been reached; timers may be 0.1 ms late. */
static inline bool is_about(weft_nsec now_ns, weft_nsec at_ns)
{
	return now_ns >= at_ns && now_ns <= at_ns + WEFT_US(400);
}

#endif

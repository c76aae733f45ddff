/* SPDX-License-Identifier: MIT */
/*
 * Two schedulers with one kind of queue alone, to measure weft against: a
 * queue that all threads share, or a queue for each thread.
 */
#ifndef BENCH_QUEUE_BASELINE_H
#define BENCH_QUEUE_BASELINE_H

#include <stdbool.h>

enum {
	BASELINE_SPREAD = 20000, /* tasks that one task starts */
	BASELINE_TASKS = 1000,	 /* tasks that yield, and how often each does */
	BASELINE_YIELDS = 1000,
};

/* Computes for about 2 us, without a look at the clock. */
void baseline_spin(void);

/* Runs the tasks of spread or of short on so many threads, and waits for them.
 * local: a queue for each thread; else one for all. */
void baseline_run(int threads, bool local, bool spreads);

#endif

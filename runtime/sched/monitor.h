/* SPDX-License-Identifier: MIT */
/*
 * Monitor - the sleeping worker that looks after those that run.  While some
 * worker runs and others sleep, one sleeper wakes every millisecond, or ten
 * times as often while a worker is late, until nothing has happened for 100 ms.
 * (While the number of running workers is limited it wakes every two
 * milliseconds: no worker is late before.)
 *
 * (Not every two without a limit: a kernel may put the thread of the monitor on
 * the core of the thread that computes, where it may wait for a clock tick, 4
 * ms: io/os/slice.h.  Measured: 1 to 4.)
 *
 * Orderings
 *   [monitor.retire]  seq_cst: a worker that retires stores `monitor` and then
 *       reads the counts; a worker that wakes lowers the counts and then reads
 *       `monitor`.  A store followed by a load of another location, on both
 *       sides.
 */
#ifndef WEFT_RUNTIME_SCHED_MONITOR_H
#define WEFT_RUNTIME_SCHED_MONITOR_H

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

/* The worker of that index stops being the monitor, if it is. */
void weft__monitor_resign(struct weft_runtime *runtime, uint32_t index);

bool weft__all_parked(struct weft_runtime *runtime);

/* How long this worker, which has announced that it parks, may sleep.  If there
 * is no monitor, this worker becomes it. */
uint64_t weft__monitor_wait_ns(struct weft__worker *worker);

/*
 * This worker watches, and its sleep is over.  Is there a task in the injection
 * queue, while all workers sleep and none is on its way?  One should have been
 * woken for it.  (A worker that was woken counts as searching until it is awake
 * and has found something.  A worker that has not yet looked a last time does
 * not sleep yet.)
 *
 * The question is asked while this worker is still listed as asleep: a worker
 * that gives way may leave its tasks to one that is awake, and sleep.
 */
bool weft__monitor_overlooked(struct weft__worker *worker);

/* The monitor's sleep ended without a wake: looks after the other workers, and
 * counts what was overlooked. */
void weft__monitor_look(struct weft__worker *worker, uint64_t now_ns,
			bool overlooked);

/* This worker was woken.  True: it was appointed, and is the monitor unless it
 * has something to run. */
bool weft__monitor_came(struct weft__worker *worker);

/* This worker has something to run after a sleep.  If it watched, another
 * worker watches from here on. */
void weft__monitor_ran(struct weft__worker *worker, uint64_t now_ns);

#endif

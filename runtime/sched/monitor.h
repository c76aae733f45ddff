/* SPDX-License-Identifier: MIT */
/*
 * Monitor - while some worker runs and others sleep, one sleeper looks up
 * every millisecond, or ten times as often while one is late, until nothing has
 * happened for 100 ms.  (In a crowd every two: nobody is late before.)
 *
 * (Not every two: a kernel may put the thread that looks up on the core of the
 * one that computes, where it may wait for a clock tick, 4 ms: io/os/slice.h.
 * Measured: 1 to 4.)
 *
 * Orderings
 *   [monitor.retire]  seq_cst: who retires stores `monitor` and then reads
 *       the counts; who wakes lowers the counts and then reads `monitor`.  A
 *       store followed by a load of another location, on both sides.
 */
#ifndef WEFT_RUNTIME_SCHED_MONITOR_H
#define WEFT_RUNTIME_SCHED_MONITOR_H

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

/* That worker, if it is the monitor, no longer is. */
void weft__monitor_resign(struct weft_runtime *runtime, uint32_t index);

bool weft__all_parked(struct weft_runtime *runtime);

/* How long this worker, which is announced as parked, may sleep; if there is no
 * monitor, it now is. */
uint64_t weft__monitor_wait_ns(struct weft__worker *worker);

/* The monitor has looked up without being woken. */
void weft__monitor_look(struct weft__worker *worker, uint64_t now_ns);

/* This worker, which was woken, is to be the monitor, unless it has something
 * to run. */
bool weft__monitor_came(struct weft__worker *worker);

/* This worker has something to run after a sleep: if it watched, from here on
 * another one does. */
void weft__monitor_ran(struct weft__worker *worker, uint64_t now_ns);

#endif

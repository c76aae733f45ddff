/* SPDX-License-Identifier: MIT */
/*
 * Sentinel - while some worker runs and others sleep, one sleeper looks up
 * every millisecond, or ten times as often while one is late, until nothing has
 * happened for 100 ms.  (In a crowd every two: nobody is late before.)
 *
 * (Not every two: a kernel may put the thread that looks up on the core of the
 * one that computes, where it may wait for a clock tick, 4 ms: io/os/slice.h.
 * Measured: 1 to 4.)
 *
 * Orderings
 *   [sentinel.retire]  seq_cst: who retires stores `sentinel` and then reads
 *       the counts; who wakes lowers the counts and then reads `sentinel`.  A
 *       store followed by a load of another location, on both sides.
 */
#ifndef WEFT_RUNTIME_SCHED_MONITOR_H
#define WEFT_RUNTIME_SCHED_MONITOR_H

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

/* That worker, if it is the sentinel, no longer is. */
void weft__sentinel_resign(struct weft_runtime *runtime, uint32_t index);

bool weft__all_parked(struct weft_runtime *runtime);

/* How long this worker, which is announced as parked, may sleep; if there is no
 * sentinel, it now is. */
uint64_t weft__sentinel_wait_ns(struct weft__worker *worker);

/* The sentinel has looked up without being woken. */
void weft__sentinel_look(struct weft__worker *worker, uint64_t now_ns);

/* This worker, which was woken, is to be the sentinel, unless it has something
 * to run. */
bool weft__sentinel_came(struct weft__worker *worker);

/* This worker has something to run after a sleep: if it watched, from here on
 * another one does. */
void weft__sentinel_ran(struct weft__worker *worker, uint64_t now_ns);

#endif

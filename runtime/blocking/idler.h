/* SPDX-License-Identifier: MIT */
/*
 * Idler - a thread of the pool that has no job.
 *
 *	LOOKS -----------> SLEEPS		by the thread, in vain
 *	  |                  |
 *	  +----> CALLED <----+			by a caller, under the lock
 *
 * A caller wakes a thread only if it found it asleep, or about to be: a thread
 * that looks finds the call.  The thread that became idle last is called first.
 *
 * The links and the list are under the pool's lock.
 */
#ifndef WEFT_RUNTIME_BLOCKING_IDLER_H
#define WEFT_RUNTIME_BLOCKING_IDLER_H

#include "runtime/sched/runtime.h"

/* Lies on its thread's stack, and is zero at first. */
struct weft__idler {
	struct weft__idler *next;
	struct weft__idler **link;
	weft__atomic(uint32_t) state; /* a futex */
	struct weft__spin spin;	      /* the thread's own */
};

struct weft__idlers {
	struct weft__idler *first; /* the latest */
};

/* called: it counts as called from the start, and is not in the list.  looks:
 * it looks for a call before it sleeps.  Under the lock. */
void weft__idler_add(struct weft__idlers *idlers, struct weft__idler *self,
		     bool called, bool looks);

/* Under the lock. */
void weft__idler_remove(struct weft__idler *self);

/* Calls a thread.  False: there is none.  The caller wakes *ret_futex after it
 * has dropped the lock.  Under the lock. */
bool weft__idler_call(struct weft__idlers *idlers,
		      weft__atomic(uint32_t) **ret_futex);

/* Of a thread that was called; NULL: there is none to wake. */
void weft__idler_wake(weft__atomic(uint32_t) *futex);

bool weft__idler_is_called(struct weft__idler *self);

/* Waits until the thread is called, or idle_ns have passed. */
void weft__idler_wait(struct weft_runtime *runtime, struct weft__idler *self,
		      uint64_t idle_ns);

#endif

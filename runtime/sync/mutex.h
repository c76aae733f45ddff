/* SPDX-License-Identifier: MIT */
/*
 * Mutex - held by one task at a time, across suspensions too.
 *
 * Handing it over.  An owner that was suspended while it held the mutex hands
 * it to the oldest waiter.  No other task could have had it meanwhile.  If the
 * owner released it instead, it might take it again before the waiter runs, and
 * each turn would be a useless switch.  After a short section a hand-over is
 * slow: all other tasks would wait for a task that does not run yet.  So there
 * the unlock releases the mutex and wakes the oldest waiter, which tries again;
 * a waiter is passed over only once.  (Go's sync.Mutex draws the line at 1 ms
 * of waiting; here no clock is read.)
 *
 * The word holds the owner, and whether waiters may be queued:
 *
 *	       lock                 a waiter queues
 *	free <------> owner  ---------------------> owner + QUEUED
 *	      unlock         <---------------------  | under the lock only,
 *	                      none is queued (MTX3)    | to any other
 *
 * Without contention a lock is one compare-and-swap, and an unlock another.
 *
 * Invariants
 *   MTX1  If the mutex is free and a waiter is queued, then a waiter that was
 *       taken out of the queue is about to try again (called).  It tries under
 *       the lock before anything else; a cancellation does not prevent that.
 *   MTX2  QUEUED is set before a waiter is queued.  While it is set, only a
 *       holder of the lock changes the word: the one-step lock and unlock fail,
 *       since they do not find the word that they expect.
 *   MTX3  After an unlock has made the mutex free to be locked in one step, it
 *       does not touch the mutex, except while a waiter still has to return
 *       from its call: the next owner may free the memory.
 *
 * Orderings
 *   [mutex.pass]  the word that says free, stored release -> swapped acquire by
 *       the next owner: what the last owner did.  A waiter that is handed the
 *       mutex gets that through the grant (waiter.h).
 */
#ifndef WEFT_RUNTIME_SYNC_MUTEX_H
#define WEFT_RUNTIME_SYNC_MUTEX_H

#include <weft/sync.h>

#include "runtime/sched/waiter.h"

struct weft__mutex {
	struct weft__lock lock;
	bool called; /* under lock: a waiter was woken to try again */
	weft__atomic(uint64_t) word; /* the owner, as below, and QUEUED */
	uint64_t owner_runs; /* the owner's: its worker's count of runs then */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved2[3];
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__mutex) == sizeof(struct weft_mutex),
	       "the public struct has room for it");

/* Neither is a task's address, nor a bit of one. */
#define WEFT__OWNER_THREAD ((uint64_t)1)
#define WEFT__MUTEX_QUEUED ((uint64_t)2)

/* A task is known by its address: tasks of several runtimes may have one id. */
static inline uint64_t weft__owner_of(struct weft__task *task)
{
	return task ? (uint64_t)(uintptr_t)task : WEFT__OWNER_THREAD;
}

static inline uint64_t weft__owner_self(struct weft__worker *worker)
{
	return weft__owner_of(weft__self(worker));
}

/* weft_mutex_lock() without interruption.  `worker` is the caller's, or
 * NULL. */
void weft__mutex_lock(struct weft_mutex *mutex, struct weft__worker *worker);

/* The owner of the mutex, or the task that runs the once, as weft__owner_of()
 * has it; 0: none.  Called from any thread, while a task waits for the
 * object. */
uint64_t weft__mutex_owner(const void *mutex);
uint64_t weft__once_owner(const void *once);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Mutex - held by one task at a time, across suspensions too.
 *
 * Handing it over.  When nobody else could have had it meanwhile, the one who
 * unlocks hands the mutex to the oldest that waits: had he let it go, he might
 * take it again before that one runs, and each turn would be a switch for
 * nothing.  That is so when he was suspended while he held it.  But for a short
 * section that is slow the other way: all who want the mutex would wait for a
 * task that is not running yet.  So there he lets it go and wakes the oldest,
 * who tries again; a second time he is not passed over.  (Go's sync.Mutex draws
 * the line at 1 ms of waiting; here no clock is read.)
 *
 * The word is the owner, and whether somebody may be queued:
 *
 *	       lock                 somebody queues himself
 *	free <------> owner  ---------------------> owner + QUEUED
 *	      unlock         <---------------------  | by the lock alone,
 *	                      nobody is queued (M3)  | to any other
 *
 * Nobody meets anybody as a rule: then a lock is one compare-and-swap, and an
 * unlock another.
 *
 * Invariants
 *   M1  If nobody holds it and somebody is queued, then one who was taken out
 *       of the queue is on his way (called), and looks at it under the lock
 *       before anything else: a cancellation does not keep him from that.
 *   M2  QUEUED is set before somebody is queued, and while it is, whoever
 *       changes the word has the lock: neither a lock in one step nor an unlock
 *       meets the word that it expects.
 *   M3  Who unlocks touches nothing of the mutex after it is free to be locked
 *       in one step, unless somebody is still to come out of his call: the next
 *       to hold it may free it.
 *
 * Orderings
 *   [mutex.pass]  the word that says free, stored release -> swapped acquire by
 *       who locks: what the one before did.  Who is granted it is told so by
 *       the grant (waiter.h).
 */
#ifndef WEFT_RUNTIME_SYNC_MUTEX_H
#define WEFT_RUNTIME_SYNC_MUTEX_H

#include <weft/sync.h>

#include "runtime/sched/waiter.h"

struct weft__mutex {
	struct weft__lock lock;
	bool called; /* under lock: somebody was, to try again */
	weft__atomic(uint64_t) word; /* the owner, as below, and QUEUED */
	uint64_t owner_runs; /* the owner's: how many runs its worker had had */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved2[3];
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__mutex) == sizeof(struct weft_mutex),
	       "the public struct has room for it");

/* No task's address, nor a bit of one. */
#define WEFT__OWNER_THREAD ((uint64_t)1)
#define WEFT__MUTEX_QUEUED ((uint64_t)2)

/* A task by its address: several runtimes have tasks of the same id. */
static inline uint64_t weft__owner_of(struct weft__task *task)
{
	return task ? (uint64_t)(uintptr_t)task : WEFT__OWNER_THREAD;
}

static inline uint64_t weft__owner_self(struct weft__worker *worker)
{
	return weft__owner_of(weft__self(worker));
}

/* weft_mutex_lock() in full, whatever happens; `worker` is the caller's, or
 * NULL. */
void weft__mutex_lock(struct weft_mutex *mutex, struct weft__worker *worker);

/* Who holds it, or runs what is to be done once, as weft__owner_of() has it; 0:
 * nobody.  From any thread, while somebody waits for it. */
uint64_t weft__mutex_owner(const void *mutex);
uint64_t weft__once_owner(const void *once);

#endif

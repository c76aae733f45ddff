/* SPDX-License-Identifier: MIT */
/*
 * A lock for sections of a few dozen instructions that never suspend.
 *
 * As a rule the holder runs on a core, so a waiter spins; when the holder seems
 * to have lost its core, the waiter gives up its own.  Dropping is a plain
 * store: no thread sleeps on the word, so there is none to wake.
 *
 * Orderings
 *   [lock.pass]  drop release -> take acquire: the next holder sees what was
 *       written under the lock.
 */
#ifndef WEFT_RUNTIME_BASE_LOCK_H
#define WEFT_RUNTIME_BASE_LOCK_H

#include "runtime/base/atomic.h"

struct weft__lock {
	weft__atomic(uint32_t) held;
};

void weft__lock_slow(struct weft__lock *lock);

static inline bool weft__lock_try(struct weft__lock *lock)
{
	/* pairs: [lock.pass] */
	return !weft__swap(&lock->held, 1u, acquire);
}

static inline void weft__lock_take(struct weft__lock *lock)
{
	if (__builtin_expect(!weft__lock_try(lock), 0))
		weft__lock_slow(lock);
}

static inline void weft__lock_drop(struct weft__lock *lock)
{
	/* pairs: [lock.pass] */
	weft__store(&lock->held, 0u, release);
}

#endif

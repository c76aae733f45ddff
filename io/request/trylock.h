/* SPDX-License-Identifier: MIT */
/*
 * Trylock - the right to take a shard's completions, and a promise to workers
 * that were refused it.
 *
 *	          .------------- try ------------.
 *	          |                              v
 *	        FREE 0 <------- drop -------- HELD 1
 *	          ^                              | try of another, which fails
 *	          '-- drop (returns true) ---- HELD | AGAIN 3
 *
 * A worker does not wait for the lock to do work that its holder can do as
 * well.  A worker that is refused leaves AGAIN and goes on; the holder sees
 * AGAIN when it drops the lock, and serves the shard once more.
 *
 * Invariants
 *   LOCK1  At most one thread holds the lock: the one whose CAS set HELD.
 *   LOCK2  After a refused try the shard is served by a thread that sees all
 *       writes of the refused one before its try.  That thread is the holder,
 *       whose drop returned AGAIN, or the thread that keeps this holder from
 *       taking the lock once more, and so on.
 *   LOCK3  A refused try is a read-modify-write even if AGAIN is set already.
 *       With a mere load the holder could miss the refused thread's writes.
 *
 * Orderings
 *   [trylock.pass]  drop release -> try acquire: the next holder sees what the
 *       last one did to the ring; and refused try release -> drop
 *       acquire: LOCK2.
 *   Modelled in tests/model/model_trylock.c.
 */
#ifndef WEFT_IO_REQUEST_TRYLOCK_H
#define WEFT_IO_REQUEST_TRYLOCK_H

#include "runtime/base/atomic.h"

#define WEFT__TRYLOCK_HELD ((uint32_t)1 << 0)
#define WEFT__TRYLOCK_AGAIN ((uint32_t)1 << 1)

struct weft__trylock {
	weft__atomic(uint32_t) word;
};

/* False: another thread holds the lock, and will serve the shard once more. */
static inline bool weft__trylock_try(struct weft__trylock *lock)
{
	/* relaxed: decided by the CAS. */
	uint32_t old = weft__load(&lock->word, relaxed);
	uint32_t new;

	do {
		new = old & WEFT__TRYLOCK_HELD ? old | WEFT__TRYLOCK_AGAIN :
						 WEFT__TRYLOCK_HELD;
		/* pairs: [trylock.pass] */
	} while (!weft__cas(&lock->word, &old, new,
			    acq_rel)); /* mutate: retry */
	return !(old & WEFT__TRYLOCK_HELD);
}

/* For a caller that cannot leave the work to the holder: tries for the lock
 * `looks` times.  False: it was never free. */
static inline bool weft__trylock_take(struct weft__trylock *lock,
				      unsigned looks)
{
	for (unsigned i = 0; i < looks; i++) {
		uint32_t old = 0;

		/* relaxed: decided by the CAS.  pairs: [trylock.pass] */
		if (!weft__load(&lock->word, relaxed) &&
		    weft__cas(&lock->word, &old, WEFT__TRYLOCK_HELD, acquire))
			return true;
		weft__spin_hint();
	}
	return false;
}

/* True: a thread was refused meanwhile.  The caller tries the lock once more,
 * and serves the shard once more if it gets it. */
static inline bool weft__trylock_drop(struct weft__trylock *lock)
{
	/* pairs: [trylock.pass] */
	return weft__swap(&lock->word, (uint32_t)0, acq_rel) &
	       WEFT__TRYLOCK_AGAIN;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Trylock - who may take a shard's completions, and a promise to all others.
 *
 *	          .------------- try ------------.
 *	          |                              v
 *	        FREE 0 <------- drop -------- HELD 1
 *	          ^                              | try of another, which fails
 *	          '-- drop (says so) --- HELD | AGAIN 3
 *
 * Nobody waits for the lock to do what its holder can do as well.  One that is
 * refused leaves AGAIN, and goes on; the holder learns of it as it drops the
 * lock, and looks once more.
 *
 * Invariants
 *   LOCK1  At most one thread holds the lock: the one whose CAS set HELD.
 *   LOCK2  After a refused try somebody looks at the shard who sees all that
 *       the refused one wrote before: the holder, whose drop returned AGAIN, or
 *       whoever keeps that one from taking the lock once more, and so on.
 *   LOCK3  A refused try is a read-modify-write even if AGAIN is set already.
 *       One that merely looked could have its writes missed by the holder.
 *
 * Orderings
 *   [trylock.pass]  drop release -> try acquire: what one holder did to the
 *       ring, the next sees; and refused try release -> drop acquire: LOCK2.
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

/* False: another holds it, and will look once more. */
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

/* For one who cannot leave the work to the holder: waits for the lock for so
 * many looks.  False: it was not free at any of them. */
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

/* True: somebody was refused meanwhile; the caller tries the lock once more,
 * and if it gets it looks at the shard once more. */
static inline bool weft__trylock_drop(struct weft__trylock *lock)
{
	/* pairs: [trylock.pass] */
	return weft__swap(&lock->word, (uint32_t)0, acq_rel) &
	       WEFT__TRYLOCK_AGAIN;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Spin - looking for a while before a sleep.
 *
 * Where a wait is short, the wake across processors takes longer than all
 * else, and looking saves it.  Looks in vain are counted, and each that pays
 * halves the count.  At a limit looking is skipped, and after a number of waits
 * it is tried again.  A process that has one processor does not look: what it
 * waits for needs that.
 */
#ifndef WEFT_RUNTIME_SCHED_SPIN_H
#define WEFT_RUNTIME_SCHED_SPIN_H

#include "runtime/sched/runtime.h"

enum {
	WEFT__SPIN_MISSES_MAX = 4,	/* then it is skipped */
	WEFT__SPIN_SKIPS = 250,		/* then it is tried again */
	WEFT__SPIN_LOOKS = 16,		/* between two looks at the clock */
};

/* Does looking pay?  (A shorter look after a miss would not cover the wake of
 * the other side.) */
static inline bool weft__spin_pays(struct weft__spin *spin)
{
	/* relaxed: concurrent threads only lose an update. */
	uint32_t misses = weft__load(&spin->misses, relaxed);

	if (misses < WEFT__SPIN_MISSES_MAX)
		return true;
	if (++misses >= WEFT__SPIN_MISSES_MAX + WEFT__SPIN_SKIPS)
		misses = 0;
	/* relaxed: the same. */
	weft__store(&spin->misses, misses, relaxed);
	return false;
}

static inline bool weft__spin_until(struct weft_runtime *runtime,
				    uint64_t end_ns, bool (*found)(void *arg),
				    void *arg)
{
	do {
		for (int i = 0; i < WEFT__SPIN_LOOKS; i++) {
			if (found(arg))
				return true;
			weft__spin_hint();
		}
	} while (runtime->ops->now(runtime) < end_ns);
	return false;
}

/* Looks for ns at most, until found(arg), which is called often, is true.
 * False: that was not so, or it was not called. */
static inline bool weft__spin(struct weft_runtime *runtime,
			      struct weft__spin *spin, uint64_t ns,
			      bool (*found)(void *arg), void *arg)
{
	uint32_t misses;
	bool is_found;

	if (!runtime->spins || !weft__spin_pays(spin))
		return false;
	is_found = weft__spin_until(runtime, runtime->ops->now(runtime) + ns,
				    found, arg);
	/* relaxed: concurrent threads only lose an update. */
	misses = weft__load(&spin->misses, relaxed);
	misses = is_found ? misses / 2 : misses + 1;
	/* relaxed: the same. */
	weft__store(&spin->misses, misses, relaxed);
	return is_found;
}

#endif

/* SPDX-License-Identifier: MIT */
#include "runtime/base/lock.h"

#ifndef WEFT__MODEL
#include <sched.h>
#include <time.h>
#endif

/* The spins take longer than any section on a running core.  Yields follow, and
 * then naps, since a yield does not let a holder of lower priority run. */
enum { BACK_OFF = 32, SPINS = 200, YIELDS = 250, NAP_NS = 50000 };

static void lock_wait(unsigned round)
{
#ifdef WEFT__MODEL
	(void)round;
	weft__spin_hint();
#else
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (round < SPINS)
		weft__spin_hint();
	else if (round < YIELDS)
		sched_yield();
	else
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
#endif
}

/* The holder has the lock's line in its cache, and may soon want it again: the
 * waiter does not take the line away with every look. */
static void back_off(unsigned round)
{
#ifndef WEFT__MODEL
	if (round < SPINS)
		for (int i = 0; i < BACK_OFF; i++)
			weft__spin_hint();
#else
	(void)round;
#endif
}

void weft__lock_slow(struct weft__lock *lock)
{
	unsigned round = 0;

	do {
		back_off(round);
		/* relaxed: decided by the swap of lock_try. */
		while (weft__load(&lock->held, relaxed))
			lock_wait(round++);
	} while (!weft__lock_try(lock)); /* mutate: retry */
}

/* SPDX-License-Identifier: MIT */
/*
 * Idle - which workers sleep, which search, and which one a push wakes.
 *
 *	             claim (by its waker)
 *	   PARKED ---------------------------> SEARCHING --found work--> RUNNING
 *	    ^  ^  '--woken by its own I/O-------------------------------->  |
 *	    |  '------- gives up ---------------'   ^---- searches ---------+
 *	    '---------------------------------------------- nothing to run -'
 *
 *	counts = [ searching : 32 | parked : 32 ]	one word
 *	bits   = one bit a worker, as many words as it takes
 *	monitor	 the sleeper that looks after the others (monitor.h)
 *
 * A push claims the lowest sleeper of a word, of the words in turn.  Worker 0,
 * which owns the timers, and the monitor come last.  When the monitor runs, it
 * wakes another to take its place, and that one looks for the task as well: two
 * wakes for one task.  So worker 0 comes before it, unless a run was long.
 *
 * Invariants
 *   IDLE1  `parked` is the number of workers that announced that they park and
 *       do not run again.  Each raises it before its bit is set, and lowers it
 *       itself.  The thread that clears the bit has claimed the worker; if the
 *       worker clears it itself, it was not claimed.  The old value that the
 *       AND returned decides.
 *   IDLE2  `searching` counts the workers that look for work and those on their
 *       way to it because they were claimed.  A claimer raises it for the
 *       sleeper before it clears the bit: from then on the sleeper may wake,
 *       even by itself, and lower it.  (Found by the model.)  [idle.claim]
 *   IDLE3  The thread that lowers `searching` to 0 makes sure that nothing is
 *       missed by those that relied on the searcher.  A worker that found work
 *       wakes the next one.  A worker that found none looks through all queues
 *       again, after it has announced that it parks.  A claimer that found no
 *       sleeper looks for sleepers again.
 *   IDLE4  No push is missed.  A pusher first makes its task visible, then
 *       reads the counts.  A parking worker first announces itself, then reads
 *       the queues.  Both read-modify-write the counts for that, so the later
 *       of the two acquires what the earlier one did before.  [idle.push]
 *   IDLE5  A worker whose bit is set has no task that others could take: it
 *       sets the bit after it has run or handed over all it had, and pushes
 *       only after the bit is gone.  So a look through the queues of all
 *       workers leaves out those that sleep, and its cost grows with the
 *       workers that run.
 *
 * The cost of a push: a worker's own push only raises a flag.  At the end of
 * the task's run a raised flag causes a plain look at the counts, and at the
 * end of the tick the full check of IDLE4.  (A missed look is made good within
 * 128 runs or 200 us, and costs nothing meanwhile.)
 *
 * Orderings
 *   [idle.push]  counts: the pusher's add of 0, the parker's add, and all that
 *       comes between, are read-modify-writes of one word, acquire and release:
 *       the queues themselves are read and written relaxed.
 *       seq_cst on counts and bits: a parker sets its bit, then reads the
 *       counts; a worker that stops searching lowers the counts, then reads the
 *       bits.  A store followed by a load of another location: acquire and
 *       release do not order that.  Modelled in tests/model/model_idle.c.
 *   [idle.claim]  the claimer's AND of the bit, release -> the sleeper's own,
 *       acquire: the claimer's raise of `searching` comes before the sleeper
 *       lowers it.  A sleeper that wakes by itself has not synchronised through
 *       the park word.
 */
#ifndef WEFT_RUNTIME_SCHED_IDLE_H
#define WEFT_RUNTIME_SCHED_IDLE_H

#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"

#define WEFT__IDLE_SEARCHING ((uint64_t)1 << 32)
#define WEFT__IDLE_PARKED ((uint64_t)1)
#define WEFT__MONITOR_COMES ((uint32_t)1 << 31)

/* After a long run. */
#define WEFT__IDLE_SPARED_CLAIMS 256u

/* Worker numbers are 16 bits wide elsewhere. */
#define WEFT__WORKERS_MAX 4096u
#define WEFT__IDLE_WORDS (WEFT__WORKERS_MAX / 64)

struct weft__idle {
	weft__atomic(uint64_t) counts WEFT__APART;
	weft__atomic(uint32_t) turn; /* where the next claim starts to look */
	uint32_t workers;	     /* immutable */
	uint32_t words;		     /* immutable */
	/* The monitor: worker + 1 that parks with a bounded wait to look after
	 * late ones, and WEFT__MONITOR_COMES if it has only been woken for
	 * that; 0: none. */
	weft__atomic(uint32_t) monitor WEFT__APART;
	/* Claims for a task that take the monitor before worker 0. */
	weft__atomic(uint32_t) spared_claims;
	weft__atomic(uint64_t) bits[WEFT__IDLE_WORDS] WEFT__APART;
};

static inline uint32_t weft__idle_parked(uint64_t counts)
{
	return (uint32_t)counts;
}

static inline uint32_t weft__idle_searching(uint64_t counts)
{
	return (uint32_t)(counts >> 32);
}

void weft__idle_init(struct weft__idle *idle, uint32_t workers);

/* A look without order: does that worker sleep unclaimed? */
static inline bool weft__idle_listed(struct weft__idle *idle, uint32_t worker)
{
	/* relaxed: a hint. */
	return weft__load(&idle->bits[worker / 64], relaxed) >> (worker % 64) &
	       1;
}

/* The workers of one word that do not sleep, or are on their way back: only
 * they can have work that another could take (IDLE5). */
static inline uint64_t weft__idle_awake(struct weft__idle *idle, uint32_t word)
{
	uint32_t count = idle->workers - word * 64;
	uint64_t all = count < 64 ? ((uint64_t)1 << count) - 1 : UINT64_MAX;

	/* relaxed: a pusher takes its bit away before it pushes, and checks as
	 * in IDLE4 afterwards.  A worker that acquires that check sees the bit
	 * gone; or set again, after the pusher had nothing left. */
	return ~weft__load(&idle->bits[word], relaxed) & all;
}

/* A look without order: does a worker sleep, and does none search? */
static inline bool weft__idle_wants_wake(struct weft__idle *idle)
{
	/* relaxed: a hint; the full check follows at the end of the tick. */
	uint64_t counts = weft__load(&idle->counts, relaxed);

	return weft__idle_parked(counts) && !weft__idle_searching(counts);
}

/* The full check of IDLE4 after a push.  Returns the worker that the caller
 * must wake (it counts as searching from here on), or -1. */
int weft__idle_claim(struct weft__idle *idle);

/* The same whether or not a worker searches already. */
int weft__idle_claim_any(struct weft__idle *idle);

/* The same, but claims the sleeper with the lowest number. */
int weft__idle_claim_lowest(struct weft__idle *idle);

/* The same with the highest number, to appoint a monitor: while the number of
 * workers is limited, the highest are those that may not run. */
int weft__idle_claim_highest(struct weft__idle *idle);

/* Begins to search: at most half of the workers may (a brief overshoot is
 * harmless).  False: enough search already. */
bool weft__idle_search(struct weft__idle *idle);

/* Stops searching because work was found.  True: the worker was the last one;
 * the caller wakes another. */
bool weft__idle_found(struct weft__idle *idle);

/* Announces that the worker parks.  True: it was the last that searched, or
 * none searches: the caller looks through all queues again. */
bool weft__idle_park(struct weft__idle *idle, uint32_t worker, bool searching);

/* The worker runs again.  True: it had been claimed, and counts as searching.
 * False: it woke by itself, and has taken itself off the list. */
bool weft__idle_unpark(struct weft__idle *idle, uint32_t worker);

void weft__idle_invariants(struct weft__idle *idle);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Idle - the claims, searches and parks of workers, on one word of counts and
 * one bit a worker.
 *
 * A claim raises `searching` and then clears a sleeper's bit; a sleeper that
 * wakes clears its own.  The old value of the bit shows which of them did it.
 * The states, the invariants IDLE1 to IDLE5 and the orderings are in idle.h.
 */
#include "runtime/sched/idle.h"

void weft__idle_init(struct weft__idle *idle, uint32_t workers)
{
	weft__assert(workers >= 1 && workers <= WEFT__WORKERS_MAX,
		     "the number of workers is out of range");
	idle->workers = workers;
	idle->words = (workers + 63) / 64;
}

static uint64_t lowest(uint64_t set)
{
	return set & -set;
}

static uint64_t highest(uint64_t set)
{
	return (uint64_t)1 << (63 - __builtin_clzll(set));
}

/* Clears one bit of the word that is set and in `allowed`.  Returns its worker,
 * or -1 if there is none. */
static int idle_clear_one(struct weft__idle *idle, uint32_t word,
			  uint64_t allowed, uint64_t (*choose)(uint64_t set))
{
	for (;;) {
		/* relaxed: a caller that finds no bit looks again, in
		 * idle_any. */
		uint64_t set = weft__load(&idle->bits[word], relaxed) & allowed;
		uint64_t bit;

		if (!set)
			return -1;
		bit = choose(set);
		/* pairs: [idle.claim] */
		if (weft__and(&idle->bits[word], ~bit, release) & bit)
			return (int)(word * 64) + __builtin_ctzll(bit);
		/* mutate: retry */
	}
}

/* The worker's bit, if it is one of that word. */
static uint64_t bit_in(uint32_t word, uint32_t worker)
{
	return worker / 64 == word ? (uint64_t)1 << worker % 64 : 0;
}

static int idle_clear_this(struct weft__idle *idle, uint32_t worker)
{
	return idle_clear_one(idle, worker / 64, (uint64_t)1 << worker % 64,
			      lowest);
}

/* A long run would hold up the timers of worker 0; beside a short one the wake
 * of another worker, to replace the monitor, takes longer than all else. */
static bool spares_worker_0(struct weft__idle *idle)
{
	/* relaxed: a preference, and concurrent claims only lose a count. */
	uint32_t left = weft__load(&idle->spared_claims, relaxed);

	if (left)
		/* relaxed: the same. */
		weft__store(&idle->spared_claims, left - 1, relaxed);
	return left > 0;
}

/* Any sleeper but worker 0 and the monitor, from a starting place that moves
 * on; then one of the two, and the other. */
static int idle_clear_any(struct weft__idle *idle)
{
	/* relaxed: only spreads the choice. */
	uint32_t start = weft__add(&idle->turn, 1u, relaxed) % idle->words;
	/* relaxed: a preference. */
	uint32_t monitor = (weft__load(&idle->monitor, relaxed) &
			    ~WEFT__MONITOR_COMES) -
			   1;
	uint32_t at_last[] = { 0, monitor, 0 };
	uint32_t *next = &at_last[spares_worker_0(idle)];
	int worker = -1;

	for (uint32_t i = 0; worker < 0 && i < idle->words; i++) {
		uint32_t word = (start + i) % idle->words;

		worker = idle_clear_one(
			idle, word, ~(bit_in(word, 0) | bit_in(word, monitor)),
			lowest);
	}
	for (int i = 0; worker < 0 && i < 2; i++)
		if (next[i] < idle->workers)
			worker = idle_clear_this(idle, next[i]);
	return worker;
}

/* The sleeper with the lowest number. */
static int idle_clear_lowest(struct weft__idle *idle)
{
	for (uint32_t i = 0; i < idle->words; i++) {
		int worker = idle_clear_one(idle, i, ~(uint64_t)0, lowest);

		if (worker >= 0)
			return worker;
	}
	return -1;
}

/* The sleeper with the highest number, so worker 0 last. */
static int idle_clear_highest(struct weft__idle *idle)
{
	for (uint32_t i = idle->words; i-- > 0;) {
		int worker = idle_clear_one(idle, i, ~(uint64_t)0, highest);

		if (worker >= 0)
			return worker;
	}
	return -1;
}

static bool idle_any(struct weft__idle *idle)
{
	for (uint32_t i = 0; i < idle->words; i++)
		/* pairs: [idle.push] */
		if (weft__load(&idle->bits[i], seq_cst))
			return true;
	return false;
}

/* Counted first: a worker whose bit is cleared may immediately wake by itself,
 * and stop searching.  Meanwhile others believe that a worker searches.  So a
 * claimer that finds no sleeper after all, and is the last, looks again
 * (IDLE3). */
static int idle_claim_by(struct weft__idle *idle,
			 int (*clear)(struct weft__idle *))
{
	do {
		uint64_t old;
		int worker;

		/* relaxed: the bit's AND orders it before the sleeper's; all
		 * others that rely on it depend on how it is lowered. */
		weft__add(&idle->counts, WEFT__IDLE_SEARCHING, relaxed);
		worker = clear(idle);
		if (worker >= 0)
			return worker;
		/* pairs: [idle.push] */
		old = weft__sub(&idle->counts, WEFT__IDLE_SEARCHING, seq_cst);
		if (weft__idle_searching(old) > 1)
			return -1;
	} while (idle_any(idle)); /* mutate: retry */
	return -1;
}

int weft__idle_claim_any(struct weft__idle *idle)
{
	return idle_claim_by(idle, idle_clear_any);
}

int weft__idle_claim_lowest(struct weft__idle *idle)
{
	return idle_claim_by(idle, idle_clear_lowest);
}

int weft__idle_claim_highest(struct weft__idle *idle)
{
	return idle_claim_by(idle, idle_clear_highest);
}

int weft__idle_claim(struct weft__idle *idle)
{
	/* pairs: [idle.push] */
	uint64_t counts = weft__add(&idle->counts, 0u, acq_rel);

	if (weft__idle_searching(counts) || !weft__idle_parked(counts))
		return -1;
	return weft__idle_claim_any(idle);
}

bool weft__idle_search(struct weft__idle *idle)
{
	/* relaxed: the limit may be overshot. */
	uint64_t counts = weft__load(&idle->counts, relaxed);

	if (2 * weft__idle_searching(counts) >= idle->workers)
		return false;
	/* relaxed: the caller lowers it itself; see weft__idle_claim_any. */
	weft__add(&idle->counts, WEFT__IDLE_SEARCHING, relaxed);
	return true;
}

bool weft__idle_found(struct weft__idle *idle)
{
	/* pairs: [idle.push] */
	uint64_t old = weft__sub(&idle->counts, WEFT__IDLE_SEARCHING, seq_cst);

	weft__assert(weft__idle_searching(old) > 0,
		     "a worker stopped searching that did not search");
	return weft__idle_searching(old) == 1;
}

bool weft__idle_park(struct weft__idle *idle, uint32_t worker, bool searching)
{
	uint64_t bit = (uint64_t)1 << (worker % 64);
	uint64_t change = WEFT__IDLE_PARKED;
	uint64_t old;

	if (searching)
		change -= WEFT__IDLE_SEARCHING;
	/* pairs: [idle.push] */
	old = weft__add(&idle->counts, change, seq_cst);
	weft__assert(!searching || weft__idle_searching(old) > 0,
		     "a worker parks as a searcher that did not search");
	/* pairs: [idle.push] */
	if (weft__or(&idle->bits[worker / 64], bit, seq_cst) & bit)
		weft__assert(false, "a worker parks that is parked");
	/* After the bit: a worker that still counts as searching then sees the
	 * bit when it stops, or looks through the queues.
	 * pairs: [idle.push] */
	return weft__idle_searching(weft__load(&idle->counts, seq_cst)) == 0;
}

bool weft__idle_unpark(struct weft__idle *idle, uint32_t worker)
{
	uint64_t bit = (uint64_t)1 << (worker % 64);
	/* The old value decides (IDLE1).  pairs: [idle.claim] */
	bool mine = weft__and(&idle->bits[worker / 64], ~bit, acquire) & bit;

	/* pairs: [monitor.retire] */
	weft__sub(&idle->counts, WEFT__IDLE_PARKED, seq_cst);
	return !mine;
}

void weft__idle_invariants(struct weft__idle *idle)
{
	/* relaxed: a snapshot of words that each have a range. */
	uint64_t counts = weft__load(&idle->counts, relaxed);

	weft__assert(weft__idle_parked(counts) <= idle->workers,
		     "more workers parked than there are");
	weft__assert(weft__idle_searching(counts) <= idle->workers,
		     "more workers search than there are");
}

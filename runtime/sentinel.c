/* SPDX-License-Identifier: MIT */
#include "runtime/sentinel.h"

#include "runtime/crowd.h"
#include "runtime/steal.h"

/* The shortest sleep of the sentinel. */
#define WATCH_LEAST_NS 100000u

void weft__sentinel_resign(struct weft_runtime *runtime, uint32_t index)
{
	uint32_t number = index + 1;

	/* pairs: [sentinel.retire] */
	(void)weft__cas(&runtime->sentinel, &number, 0u, seq_cst);
}

static bool is_sentinel(struct weft__worker *worker)
{
	/* relaxed: this worker's number is put there by itself, or by who has
	 * claimed and wakes it, and taken away likewise. */
	return weft__load(&worker->runtime->sentinel, relaxed) ==
	       worker->index + 1;
}

bool weft__all_parked(struct weft_runtime *runtime)
{
	/* pairs: [sentinel.retire] */
	return weft__idle_parked(weft__load(&runtime->idle.counts, seq_cst)) ==
	       runtime->workers_count;
}

static bool quiet(struct weft__worker *worker, uint64_t now_ns)
{
	/* relaxed: compared with a clock. */
	uint64_t active_ns = weft__load(&worker->runtime->active_ns, relaxed);

	return now_ns > active_ns + WEFT__QUIET_NS;
}

/* Until the first of the others will be late, unless it is seen before.  (One
 * that sleeps now will not be earlier.) */
static uint64_t watch_ns(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint64_t now_ns = runtime->ops->now(runtime);
	uint64_t late_after_ns = weft__crowd_late_ns(runtime);
	uint64_t wait_ns = late_after_ns;

	for (uint32_t i = 1; i < runtime->workers_count; i++) {
		/* relaxed: compared with a clock. */
		uint64_t seen_ns = weft__load(
			&weft__peer(worker, worker->index + i)->seen_ns,
			relaxed);
		uint64_t late_ns = seen_ns + late_after_ns + WATCH_LEAST_NS;

		if (seen_ns && late_ns < now_ns + wait_ns)
			wait_ns = late_ns > now_ns + WATCH_LEAST_NS ?
					  late_ns - now_ns :
					  WATCH_LEAST_NS;
	}
	return wait_ns;
}

static void set_watches(struct weft__worker *worker, bool watches)
{
	worker->watches = watches;
	worker->ops->watch(worker, watches);
}

/* It has been quiet for long.  True: this worker no longer watches, and may
 * sleep without end.  Either it sees one that runs, or that one sees that there
 * is no sentinel and appoints one: [sentinel.retire]. */
static bool retire(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t nobody = 0;

	set_watches(worker, false);
	weft__sentinel_resign(runtime, worker->index);
	if (weft__all_parked(runtime)) { /* mutate: recheck=true */
		weft__stacks_trim(runtime);
		return true;
	}
	/* pairs: [sentinel.retire] */
	return !weft__cas(&runtime->sentinel, &nobody, worker->index + 1,
			  seq_cst);
}

/* 0: this worker has the place now.  Else somebody else has, and it may sleep
 * for so long: it looks after others itself while that one is on its way. */
static uint64_t take_place(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t nobody = 0;

	/* pairs: [sentinel.retire] */
	if (weft__cas(&runtime->sentinel, &nobody, worker->index + 1, seq_cst))
		return 0;
	/* relaxed: advice. */
	return weft__load(&runtime->sentinel_comes, relaxed) ? WEFT__LATE_NS :
							       WEFT_NEVER;
}

uint64_t weft__sentinel_wait_ns(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint64_t wait_ns;

	if (runtime->sentinel_off || runtime->workers_count == 1)
		return WEFT_NEVER;
	wait_ns = is_sentinel(worker) ? 0 : take_place(worker);
	if (wait_ns)
		return wait_ns;
	if (weft__all_parked(runtime) &&
	    quiet(worker, worker->ops->now(runtime)) && retire(worker))
		return WEFT_NEVER;
	set_watches(worker, true);
	return watch_ns(worker);
}

/* This worker runs again after a sleep: somebody must look after it.  He has
 * the place before he wakes: else this worker, if it sleeps again before that,
 * takes it, and has to wake him anew when it runs. */
static void appoint_sentinel(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t nobody = 0;
	int index;

	if (runtime->sentinel_off || runtime->workers_count == 1 ||
	    /* pairs: [sentinel.retire] */
	    weft__load(&runtime->sentinel, seq_cst))
		return;
	index = weft__idle_claim_any(&runtime->idle);
	if (index < 0)
		return;
	/* relaxed: he sees it by the wake. */
	if (weft__cas(&runtime->sentinel, &nobody, (uint32_t)index + 1,
		      relaxed))
		/* relaxed: advice. */
		weft__store(&runtime->sentinel_comes, true, relaxed);
	weft__count(worker, WEFT__N_WAKES_SENT, 1);
	weft__unpark(worker, runtime->workers[index]); /* mutate: wake */
}

void weft__sentinel_ran(struct weft__worker *worker, uint64_t now_ns)
{
	/* relaxed: compared with a clock. */
	weft__store(&worker->runtime->active_ns, now_ns, relaxed);
	if (worker->watches) {
		weft__sentinel_resign(worker->runtime, worker->index);
		set_watches(worker, false);
	}
	appoint_sentinel(worker);
}

bool weft__sentinel_came(struct weft__worker *worker)
{
	if (!is_sentinel(worker) || worker->watches)
		return false;
	/* relaxed: advice. */
	weft__store(&worker->runtime->sentinel_comes, false, relaxed);
	set_watches(worker, true);
	return true;
}

/* Is there a task in the shared queue, while all others sleep and nobody is on
 * the way?  Somebody should have been woken for it.  (Who has been woken counts
 * as searching until it is awake and has found something; who has not looked a
 * last time does not sleep yet.) */
static bool is_overlooked(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	bool overlooked;

	if (!weft__inject_length(&runtime->inject))
		return false;
	weft__lock_take(&runtime->inject.lock);
	overlooked = weft__inject_length(&runtime->inject) != 0 &&
		     /* pairs: [idle.push] */
		     !weft__idle_searching(
			     weft__load(&runtime->idle.counts, acquire));
	for (uint32_t i = 1; i < runtime->workers_count; i++)
		/* relaxed: who has found a task and left the search is awake
		 * for whoever acquired the counts. */
		overlooked &= weft__load(&weft__peer(worker, worker->index + i)
						  ->park_word,
					 relaxed) == WEFT__PARK_SLEEPS;
	weft__lock_drop(&runtime->inject.lock);
	return overlooked;
}

void weft__sentinel_look(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;

	for (uint32_t i = 1; i < runtime->workers_count; i++)
		weft__help_if_late(
			worker, weft__peer(worker, worker->index + i), now_ns);
	if (is_overlooked(worker))
		weft__count(worker, WEFT__N_RESCUES, 1);
}

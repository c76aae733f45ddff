/* SPDX-License-Identifier: MIT */
#include "runtime/sched/monitor.h"

#include "runtime/sched/steal.h"
#include "runtime/sched/worker_limit.h"

/* The shortest sleep of the monitor. */
#define WATCH_MIN_NS 100000u

void weft__monitor_resign(struct weft_runtime *runtime, uint32_t index)
{
	uint32_t number = index + 1;

	/* pairs: [monitor.retire] */
	(void)weft__cas(&runtime->monitor, &number, 0u, seq_cst);
}

static bool is_monitor(struct weft__worker *worker)
{
	/* relaxed: only this worker puts its own number there; who takes it
	 * away has claimed it, and wakes it unless it is awake. */
	return weft__load(&worker->runtime->monitor, relaxed) ==
	       worker->index + 1;
}

bool weft__all_parked(struct weft_runtime *runtime)
{
	/* pairs: [monitor.retire] */
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
	uint64_t late_after_ns = weft__worker_limit_late_ns(runtime);
	uint64_t wait_ns = late_after_ns;

	for (uint32_t i = 1; i < runtime->workers_count; i++) {
		/* relaxed: compared with a clock. */
		uint64_t seen_ns = weft__load(
			&weft__peer(worker, worker->index + i)->seen_ns,
			relaxed);
		uint64_t late_ns = seen_ns + late_after_ns + WATCH_MIN_NS;

		if (seen_ns && late_ns < now_ns + wait_ns)
			wait_ns = late_ns > now_ns + WATCH_MIN_NS ?
					  late_ns - now_ns :
					  WATCH_MIN_NS;
	}
	return wait_ns;
}

static void set_watches(struct weft__worker *worker, bool watches)
{
	worker->wake.watches = watches;
	worker->ops->watch(worker, watches);
}

/* It has been quiet for long.  True: this worker no longer watches, and may
 * sleep without end.  Either it sees one that runs, or that one sees that there
 * is no monitor and appoints one: [monitor.retire]. */
static bool retire(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t nobody = 0;

	set_watches(worker, false);
	weft__monitor_resign(runtime, worker->index);
	if (weft__all_parked(runtime)) { /* mutate: recheck=true */
		weft__stacks_trim(&runtime->stacks);
		return true;
	}
	/* pairs: [monitor.retire] */
	return !weft__cas(&runtime->monitor, &nobody, worker->index + 1,
			  seq_cst) &&
	       !(nobody & WEFT__MONITOR_COMES);
}

/* Returns who has the place now: this worker, if nobody had. */
static uint32_t take_place(struct weft__worker *worker)
{
	weft__atomic(uint32_t) *place = &worker->runtime->monitor;
	uint32_t self = worker->index + 1, holder;

	do {
		holder = 0;
		/* pairs: [monitor.retire] */
		if (weft__cas(place, &holder, self, seq_cst))
			return self;
		/* relaxed: he who appoints wakes it, or takes that back. */
	} while (holder == (WEFT__MONITOR_COMES | self) &&
		 !weft__cas(place, &holder, self, relaxed));
	return holder == (WEFT__MONITOR_COMES | self) ? self : holder;
}

uint64_t weft__monitor_wait_ns(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t self = worker->index + 1, holder = self;

	if (runtime->monitor_off || runtime->workers_count == 1)
		return WEFT_NEVER;
	if (!is_monitor(worker))
		holder = take_place(worker);
	if (holder == self) {
		if (weft__all_parked(runtime) &&
		    quiet(worker, worker->ops->now(runtime)) && retire(worker))
			return WEFT_NEVER;
	} else if (!(holder & WEFT__MONITOR_COMES)) {
		/* Once more, if the driver could not do it before. */
		set_watches(worker, false);
		return WEFT_NEVER;
	}
	/* Who has the place; or who stands in for one that is on its way, whose
	 * thread may have no processor. */
	set_watches(worker, true);
	return watch_ns(worker);
}

/*
 * This worker runs again after a sleep: somebody must look after it.  A sleeper
 * has the place before he is woken for it: else this worker, if it sleeps again
 * before he is awake, takes it, and has to wake him anew when it runs.
 *
 * If he slept he sees the mark when he has swapped his park word.  If not he
 * may be awake already, and it is taken back: he might compute with the place,
 * and nobody would look up.
 */
static void appoint_monitor(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	if (runtime->monitor_off || runtime->workers_count == 1)
		return;
	/* pairs: [monitor.retire] */
	while (!weft__load(&runtime->monitor, seq_cst)) {
		int index = weft__idle_claim_any(&runtime->idle);
		uint32_t mark = WEFT__MONITOR_COMES | ((uint32_t)index + 1);
		uint32_t nobody = 0;

		if (index < 0)
			return;
		/* relaxed: goes with the wake. */
		(void)weft__cas(&runtime->monitor, &nobody, mark, relaxed);
		weft__count(worker, WEFT__N_WAKES_SENT, 1);
		/* mutate: wake */
		if (weft__unpark(worker, runtime->workers[index]))
			return;
		/* relaxed: the loop looks again. */
		(void)weft__cas(&runtime->monitor, &mark, 0u, relaxed);
	}
}

void weft__monitor_ran(struct weft__worker *worker, uint64_t now_ns)
{
	/* relaxed: compared with a clock. */
	weft__store(&worker->runtime->active_ns, now_ns, relaxed);
	if (worker->wake.watches) {
		weft__monitor_resign(worker->runtime, worker->index);
		set_watches(worker, false);
	}
	appoint_monitor(worker);
}

bool weft__monitor_came(struct weft__worker *worker)
{
	weft__atomic(uint32_t) *place = &worker->runtime->monitor;
	/* relaxed: the mark goes with the wake. */
	uint32_t self = worker->index + 1, holder = weft__load(place, relaxed);

	if (holder == (WEFT__MONITOR_COMES | self)) {
		/* relaxed: likewise.  Or it was taken back. */
		if (!weft__cas(place, &holder, self, relaxed))
			return false;
	} else if (holder != self || !worker->wake.claimed) {
		return false;
	}
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

void weft__monitor_look(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;

	for (uint32_t i = 1; i < runtime->workers_count; i++)
		weft__help_if_late(
			worker, weft__peer(worker, worker->index + i), now_ns);
	if (is_overlooked(worker))
		weft__count(worker, WEFT__N_RESCUES, 1);
}

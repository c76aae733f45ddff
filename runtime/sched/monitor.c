/* SPDX-License-Identifier: MIT */
/*
 * Monitor - its appointment, its sleep, and its look at the other workers.
 *
 * The word `monitor` of struct weft__idle names the worker that has the place.
 * A worker that parks takes the place if it is free.  A worker that runs again
 * after a sleep gives the place up and appoints a sleeper.  The monitor sleeps
 * with a bound; when it wakes by the clock it looks at all other workers, helps
 * those that are late (steal.h), and checks the injection queue for a task that
 * no worker was woken for.  The orderings are in monitor.h.
 */
#include "runtime/sched/monitor.h"

#include "runtime/sched/steal.h"
#include "runtime/sched/worker_limit.h"

/* The shortest sleep of the monitor. */
#define WATCH_MIN_NS 100000u

void weft__monitor_resign(struct weft_runtime *runtime, uint32_t index)
{
	uint32_t number = index + 1;

	/* pairs: [monitor.retire] */
	(void)weft__cas(&runtime->idle.monitor, &number, 0u, seq_cst);
}

static bool is_monitor(struct weft__worker *worker)
{
	/* relaxed: only this worker puts its own number there.  A worker that
	 * removes it has claimed this one, and wakes it unless it is awake. */
	return weft__load(&worker->runtime->idle.monitor, relaxed) ==
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

/* The time until the first of the other workers will be late, unless it is seen
 * before then.  (A worker that sleeps now will not be late earlier.) */
static uint64_t watch_ns(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint64_t now_ns = runtime->ops->now(runtime);
	uint64_t late_after_ns = weft__worker_limit_late_ns(runtime);
	uint64_t wait_ns = late_after_ns;

	weft__visit(worker, runtime->workers_count);
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

/* The runtime has been quiet for long.  True: this worker no longer watches,
 * and may sleep without end.  Either this worker sees one that runs, or that
 * one sees that there is no monitor and appoints one: [monitor.retire]. */
static bool retire(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t nobody = 0;

	set_watches(worker, false);
	weft__monitor_resign(runtime, worker->index);
	if (weft__all_parked(runtime)) /* mutate: recheck=true */
		return true;
	/* pairs: [monitor.retire] */
	return !weft__cas(&runtime->idle.monitor, &nobody, worker->index + 1,
			  seq_cst) &&
	       !(nobody & WEFT__MONITOR_COMES);
}

/* Returns the holder of the place: this worker, if the place was free. */
static uint32_t take_place(struct weft__worker *worker)
{
	weft__atomic(uint32_t) *place = &worker->runtime->idle.monitor;
	uint32_t self = worker->index + 1, holder;

	do {
		holder = 0;
		/* pairs: [monitor.retire] */
		if (weft__cas(place, &holder, self, seq_cst))
			return self;
		/* relaxed: the worker that appoints this one wakes it, or takes
		 * the mark back. */
	} while (holder == (WEFT__MONITOR_COMES | self) &&
		 !weft__cas(place, &holder, self, relaxed));
	return holder == (WEFT__MONITOR_COMES | self) ? self : holder;
}

uint64_t weft__monitor_wait_ns(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t self = worker->index + 1, holder = self;

	if (runtime->monitor_off || runtime->workers_count == 1)
		return UINT64_MAX;
	if (!is_monitor(worker))
		holder = take_place(worker);
	if (holder == self) {
		if (weft__all_parked(runtime) &&
		    quiet(worker, worker->ops->now(runtime)) && retire(worker))
			return UINT64_MAX;
	} else if (!(holder & WEFT__MONITOR_COMES)) {
		/* Again, in case the driver could not do it before. */
		set_watches(worker, false);
		return UINT64_MAX;
	}
	/* This worker has the place; or it stands in for a worker that is on
	 * its way, whose thread may have no processor. */
	set_watches(worker, true);
	return watch_ns(worker);
}

/*
 * This worker runs again after a sleep, so another worker must be the monitor.
 * A sleeper gets the place before it is woken.  Otherwise this worker, if it
 * sleeps again before the sleeper is awake, would take the place, and would
 * have to wake the sleeper again when it runs.
 *
 * If the sleeper did sleep, it sees the mark after it has swapped its park
 * word.  If not, it may be awake already, and the mark is taken back: it might
 * compute while it has the place, and no worker would look after the others.
 */
static void appoint_monitor(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	if (runtime->monitor_off || runtime->workers_count == 1)
		return;
	/* pairs: [monitor.retire] */
	while (!weft__load(&runtime->idle.monitor, seq_cst)) {
		int index = weft__idle_claim_highest(&runtime->idle);
		uint32_t mark = WEFT__MONITOR_COMES | ((uint32_t)index + 1);
		uint32_t nobody = 0;

		if (index < 0)
			return;
		weft__worker_limit_claimed(runtime->workers[index]);
		/* relaxed: goes with the wake. */
		(void)weft__cas(&runtime->idle.monitor, &nobody, mark, relaxed);
		weft__count(worker, WEFT__N_WAKES_SENT, 1);
		/* mutate: wake */
		if (weft__unpark(worker, runtime->workers[index]))
			return;
		/* relaxed: the loop looks again. */
		(void)weft__cas(&runtime->idle.monitor, &mark, 0u, relaxed);
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
	weft__atomic(uint32_t) *place = &worker->runtime->idle.monitor;
	/* relaxed: the mark goes with the wake. */
	uint32_t self = worker->index + 1, holder = weft__load(place, relaxed);

	if (holder == (WEFT__MONITOR_COMES | self)) {
		/* relaxed: the mark goes with the wake.  Or the mark was taken
		 * back. */
		if (!weft__cas(place, &holder, self, relaxed))
			return false;
	} else if (holder != self || !worker->wake.claimed) {
		return false;
	}
	set_watches(worker, true);
	return true;
}

bool weft__monitor_overlooked(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	bool overlooked;
	uint64_t counts;

	if (!worker->wake.watches || !weft__inject_length(&runtime->inject))
		return false;
	weft__lock_take(&runtime->inject.lock);
	/* pairs: [idle.push] */
	counts = weft__load(&runtime->idle.counts, acquire);
	overlooked = weft__inject_length(&runtime->inject) != 0 &&
		     weft__idle_parked(counts) == runtime->workers_count &&
		     !weft__idle_searching(counts);
	for (uint32_t i = 1; i < runtime->workers_count; i++)
		/* relaxed: the counts were acquired, so a worker that has found
		 * a task and left the search is seen awake. */
		overlooked &= weft__load(&weft__peer(worker, worker->index + i)
						  ->park_word,
					 relaxed) == WEFT__PARK_SLEEPS;
	weft__lock_drop(&runtime->inject.lock);
	return overlooked;
}

void weft__monitor_look(struct weft__worker *worker, uint64_t now_ns,
			bool overlooked)
{
	struct weft_runtime *runtime = worker->runtime;

	weft__visit(worker, runtime->workers_count);
	for (uint32_t i = 1; i < runtime->workers_count; i++)
		weft__help_if_late(
			worker, weft__peer(worker, worker->index + i), now_ns);
	if (overlooked)
		weft__count(worker, WEFT__N_RESCUES, 1);
}

/* SPDX-License-Identifier: MIT */
/*
 * Worker limit - how the limit is judged, and which workers are beyond it.
 *
 * At the end of a tick, when a window has passed, a worker compares the time
 * that its thread waited for a processor with the window.  More than a tenth
 * lowers the limit, unless the last worker brought more runs and its hold is
 * not over.  Otherwise the limit is raised by one after a hold, if processors
 * are idle.  Each change notes the runs a second before it, and the runs after
 * it are compared with them.  A worker is beyond the limit if at least that
 * many workers with lower numbers run, or sleep and could be woken, and no
 * other worker computes.  The reasons are in worker_limit.h.
 *
 *	raised, waits, no more runs	lowered: the next trial after twice the
 *					hold, if a processor was idle
 *	raised, waits, more runs	stays; after the hold lowered
 *	lowered, fewer runs		raised to what it was; twice the hold
 *	lowered, as many runs		stays; after the hold raised
 *
 * Concurrency: any worker may change the limit; the CAS of `changed_ns` admits
 * one at a time.  Each relaxed access is advice unless its note says otherwise.
 */
#include "runtime/sched/worker_limit.h"

/* A worker that waits for more than one part in SHARE of the time waits too
 * much.  More workers are worth it if the runs of tasks a second are more by
 * one part in GAIN.  Over one window an eighth is chance. */
enum { SHARE = 10, GAIN = 4 };

/* A window longer than that was mostly sleep, and shows nothing. */
#define WINDOW_MAX_NS (4 * WEFT__WORKER_LIMIT_WINDOW_NS)

/* A worker that is tried and found one too many within TRIAL_NS was not needed:
 * the next trial comes later, at most HOLD_MAX_NS later. */
#define TRIAL_NS (16 * WEFT__WORKER_LIMIT_WINDOW_NS)
#define HOLD_MAX_NS 4000000000u

/* A lower limit that costs runs is seen within that time. */
#define LOSS_NS (4 * WEFT__WORKER_LIMIT_WINDOW_NS)

/* The time over which processors were idle or not. */
#define CPU_IDLE_NS 100000000u

void weft__worker_limit_init(struct weft_runtime *runtime)
{
	/* relaxed: before the workers run. */
	weft__store(&runtime->worker_limit.max, runtime->workers_count,
		    relaxed);
	/* relaxed: the same.  A worker that judges may see the first limit
	 * before it sees how long that holds. */
	weft__store(&runtime->worker_limit.hold_ns,
		    (uint64_t)WEFT__WORKER_LIMIT_HOLD_NS, relaxed);
}

static uint32_t workers_running(struct weft_runtime *runtime)
{
	/* relaxed: advice. */
	return runtime->workers_count -
	       weft__idle_parked(weft__load(&runtime->idle.counts, relaxed));
}

/* ---- Evidence ---------------------------------------------------------- */

static uint64_t sum(struct weft_runtime *runtime, enum weft__count which)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < runtime->workers_count; i++)
		/* relaxed: advice. */
		all += weft__load(&runtime->workers[i]->counts[which], relaxed);
	return all;
}

/* The growth of a number since the last look. */
static uint64_t growth(weft__atomic(uint64_t) *last, uint64_t number)
{
	/* relaxed: advice. */
	uint64_t before = weft__load(last, relaxed);

	/* relaxed: the same. */
	weft__store(last, number, relaxed);
	return number - before;
}

/* One worker counts the runs of all in each window: a moving average, half of
 * it new. */
static void runs_count(struct weft_runtime *runtime, uint64_t now_ns)
{
	struct weft__worker_limit *limit = &runtime->worker_limit;
	/* relaxed: advice. */
	uint64_t counted_ns = weft__load(&limit->counted_ns, relaxed);
	uint64_t window_ns = now_ns - counted_ns, before, runs, completions;

	if (now_ns < counted_ns || window_ns < WEFT__WORKER_LIMIT_WINDOW_NS ||
	    /* relaxed: advice. */
	    !weft__cas(&limit->counted_ns, &counted_ns, now_ns, relaxed))
		return;
	runs = growth(&limit->runs, sum(runtime, WEFT__N_POLLS));
	completions = growth(&limit->completions,
			     sum(runtime, WEFT__N_COMPLETIONS));
	/* relaxed: the same. */
	weft__store(&limit->serving, completions > runs / 2, relaxed);
	/* relaxed: the same. */
	before = weft__load(&limit->rate, relaxed);
	runs = window_ns > WINDOW_MAX_NS ? 0 : runs * 1000000000u / window_ns;
	/* relaxed: the same. */
	weft__store(&limit->rate, before && runs ? (before + runs) / 2 : runs,
		    relaxed);
}

/* Was half a processor idle since the last look, or can that not be
 * measured? */
static bool processors_are_free(struct weft_runtime *runtime, uint64_t now_ns)
{
	struct weft__worker_limit *limit = &runtime->worker_limit;
	/* relaxed: advice. */
	uint64_t before_ns = weft__load(&limit->cpu_looked_ns, relaxed);
	/* relaxed: the same. */
	uint64_t idle_before_ns = weft__load(&limit->cpu_idle_ns, relaxed);
	uint64_t length_ns = now_ns - before_ns, idle_ns;
	bool is_free;

	if (now_ns < before_ns || length_ns < CPU_IDLE_NS ||
	    /* relaxed: the same. */
	    !weft__cas(&limit->cpu_looked_ns, &before_ns, now_ns, relaxed))
		/* relaxed: the same. */
		return weft__load(&limit->cpu_free, relaxed);
	idle_ns = runtime->ops->cpu_idle(runtime);
	is_free = !idle_ns || idle_ns - idle_before_ns >= length_ns / 2;
	/* relaxed: the same. */
	weft__store(&limit->cpu_idle_ns, idle_ns, relaxed);
	/* relaxed: the same. */
	weft__store(&limit->cpu_free, is_free, relaxed);
	return is_free;
}

/* ---- Changes ----------------------------------------------------------- */

/* The limit as a worker has found it, and the time; and then the limit that it
 * sets. */
struct change {
	uint64_t changed_ns, now_ns;
	uint64_t hold_ns;
	uint64_t rate, rate_before; /* 0: not known */
	uint32_t max, max_before;
	bool raised, gained;
};

/* One worker changes the limit at a time, and the next one only after a window
 * of its own. */
static void limit_change(struct weft_runtime *runtime, struct change *change,
			 uint32_t max)
{
	struct weft__worker_limit *limit = &runtime->worker_limit;

	/* relaxed: advice. */
	if (!weft__cas(&limit->changed_ns, &change->changed_ns, change->now_ns,
		       relaxed))
		return;
	/* relaxed: advice. */
	weft__store(&limit->hold_ns, change->hold_ns, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->raised, max > change->max, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->gained, false, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->max_before, change->max, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->rate_before, change->rate, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->counted_ns, change->now_ns, relaxed);
	growth(&limit->runs, sum(runtime, WEFT__N_POLLS));
	growth(&limit->completions, sum(runtime, WEFT__N_COMPLETIONS));
	/* relaxed: advice. */
	weft__store(&limit->rate, (uint64_t)0, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->cpu_looked_ns, change->now_ns, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->cpu_idle_ns, runtime->ops->cpu_idle(runtime),
		    relaxed);
	/* relaxed: advice. */
	weft__store(&limit->max, max, relaxed);
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void hold_double(struct change *change)
{
	if (change->hold_ns < HOLD_MAX_NS)
		change->hold_ns *= 2;
}

/* Has the limit been raised, and are there clearly more runs since then? */
static bool has_gained(const struct change *change)
{
	return change->raised && change->rate_before &&
	       change->rate >=
		       change->rate_before + change->rate_before / GAIN;
}

/* Was the limit lowered a short while ago, and are there clearly fewer runs
 * since then? */
static bool has_lost(const struct change *change)
{
	uint64_t since_ns = change->now_ns - change->changed_ns;

	return !change->raised && change->rate && change->rate_before &&
	       since_ns >= WEFT__WORKER_LIMIT_WINDOW_NS &&
	       since_ns < LOSS_NS &&
	       change->rate + change->rate / GAIN < change->rate_before;
}

/* A worker waits too much.  If the last worker that was added brought more runs
 * all the same, it stays, and is tested again after the hold. */
static void limit_lower(struct weft_runtime *runtime, struct change *change)
{
	uint64_t since_ns = change->now_ns - change->changed_ns;
	uint32_t running = workers_running(runtime);

	if (has_gained(change)) {
		if (since_ns >= change->hold_ns)
			limit_change(runtime, change, change->max - 1);
		return;
	}
	if (!change->raised || change->gained || since_ns >= TRIAL_NS) {
		change->hold_ns = WEFT__WORKER_LIMIT_HOLD_NS;
	} else {
		/* A trial without a free processor says nothing about one
		 * with. */
		/* relaxed: advice. */
		if (weft__load(&runtime->worker_limit.cpu_free, relaxed))
			hold_double(change);
		else
			change->hold_ns = WEFT__WORKER_LIMIT_HOLD_NS;
		change->rate = 0; /* it was compared already */
	}
	/* After a trial as before it.  Otherwise as many as run now, which the
	 * next window shows; but few workers may run now by chance. */
	if (change->raised || running >= change->max)
		limit_change(runtime, change, change->max - 1);
	else
		limit_change(runtime, change, most(running, change->max / 2));
}

static void limit_raise(struct weft_runtime *runtime, struct change *change)
{
	uint64_t since_ns = change->now_ns - change->changed_ns;

	/* A lower limit that cost nothing. */
	if (!change->raised && change->rate_before)
		change->hold_ns = WEFT__WORKER_LIMIT_HOLD_NS;
	/* Without a free processor one more worker does no more than the others
	 * could, except for its fair share of the processors. */
	if (change->max == runtime->workers_count ||
	    (!processors_are_free(runtime, change->now_ns) &&
	     since_ns < HOLD_MAX_NS) ||
	    since_ns < change->hold_ns)
		return;
	if (change->raised) /* the one before was needed */
		change->hold_ns = WEFT__WORKER_LIMIT_HOLD_NS;
	limit_change(runtime, change, change->max + 1);
}

/* The lower limit was wrong.  It is tried again after twice the time. */
static void limit_restore(struct weft_runtime *runtime, struct change *change)
{
	hold_double(change);
	limit_change(runtime, change, change->max_before);
	/* relaxed: advice. */
	weft__store(&runtime->worker_limit.cpu_free, false, relaxed);
}

static struct change limit_now(struct weft__worker_limit *limit,
			       uint64_t now_ns)
{
	return (struct change){
		/* relaxed: advice. */
		.changed_ns = weft__load(&limit->changed_ns, relaxed),
		.now_ns = now_ns,
		/* relaxed: advice. */
		.hold_ns = weft__load(&limit->hold_ns, relaxed),
		/* relaxed: advice. */
		.rate = weft__load(&limit->rate, relaxed),
		/* relaxed: advice. */
		.rate_before = weft__load(&limit->rate_before, relaxed),
		/* relaxed: advice. */
		.max = weft__load(&limit->max, relaxed),
		/* relaxed: advice. */
		.max_before = weft__load(&limit->max_before, relaxed),
		/* relaxed: advice. */
		.raised = weft__load(&limit->raised, relaxed),
		/* relaxed: advice. */
		.gained = weft__load(&limit->gained, relaxed),
	};
}

/* ---- The look after a window ------------------------------------------- */

/* Are most of the worker's runs since the last look short, and due to
 * completions?  If most runs of all workers are, so are those of tasks that it
 * took from the others. */
static bool look_at_runs(struct weft__worker *worker)
{
	struct weft__worker_limits *last = &worker->limit;
	weft__atomic(uint64_t) *counts = worker->counts;
	/* relaxed: the owner's own. */
	uint64_t polls = weft__load(&counts[WEFT__N_POLLS], relaxed);
	/* relaxed: the same. */
	uint64_t done = weft__load(&counts[WEFT__N_COMPLETIONS], relaxed);
	/* relaxed: the same. */
	uint64_t taken = weft__load(&counts[WEFT__N_INJECTED], relaxed) +
			 /* relaxed: the same. */
			 weft__load(&counts[WEFT__N_STOLEN], relaxed);
	uint64_t due = done - last->completions;
	bool serves;

	/* relaxed: advice. */
	if (weft__load(&worker->runtime->worker_limit.serving, relaxed))
		due += taken - last->taken;
	serves = due > (polls - last->polls) / 2 &&
		 worker->tick.average_ns < WEFT__TICK_NS / 2;
	last->polls = polls;
	last->completions = done;
	last->taken = taken;
	return serves;
}

/* Without a monitor the limit stays off: no worker would help when one that
 * runs is late. */
void weft__worker_limit_judge(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;
	uint64_t window_ns = now_ns - worker->limit.looked_ns, waited_ns;
	struct change change;
	bool whole;

	if (runtime->workers_count > 1)
		runs_count(runtime, now_ns);
	/* relaxed: advice. */
	weft__store(&worker->serves, look_at_runs(worker), relaxed);
	change = limit_now(&runtime->worker_limit, now_ns);
	whole = worker->limit.looked_ns >= change.changed_ns &&
		window_ns < WINDOW_MAX_NS;
	worker->limit.looked_ns = now_ns;
	if (runtime->workers_count == 1 || runtime->monitor_off ||
	    now_ns < change.changed_ns)
		return;
	waited_ns = worker->limit.waited_ns;
	worker->limit.waited_ns = worker->ops->waited(worker);
	waited_ns = worker->limit.waited_ns - waited_ns;
	if (has_gained(&change))
		/* relaxed: advice. */
		weft__store(&runtime->worker_limit.gained, true, relaxed);
	if (has_lost(&change)) {
		limit_restore(runtime, &change);
	} else if (change.max > 1 && whole &&
		   waited_ns > window_ns / SHARE) {
		limit_lower(runtime, &change);
	} else {
		limit_raise(runtime, &change);
	}
}

static bool is_recent(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns + WEFT__WORKER_LIMIT_LATE_NS >= now_ns;
}

/* Does the worker compute, and has it had something to run for longer than a
 * lost processor costs?  A worker that served and is now late may compute. */
static bool is_loaded(struct weft__worker *worker, uint64_t now_ns)
{
	/* relaxed: advice; and compared with a clock. */
	bool serves = weft__load(&worker->serves, relaxed) &&
		      /* relaxed: the same. */
		      is_recent(weft__load(&worker->seen_ns, relaxed), now_ns);

	/* relaxed: the same. */
	return !serves && now_ns > weft__load(&worker->drained_ns, relaxed) +
					   WEFT__WORKER_LIMIT_SLICE_NS;
}

bool weft__worker_limit_has_enough(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	/* relaxed: advice. */
	uint32_t max = weft__load(&runtime->worker_limit.max, relaxed);

	return workers_running(runtime) >= max &&
	       !is_loaded(worker, worker->tick.clock_ns);
}

/* Of the workers with numbers below this one's: those that run, and those that
 * will run when they are woken.  Not those that are late, or were woken and
 * have not come: they compute, or have no processor. */
struct lower {
	uint32_t awake, asleep;
};

static struct lower count_lower(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;
	struct lower lower = { 0, 0 };

	for (uint32_t i = 0; i < worker->index; i++) {
		struct weft__worker *other = runtime->workers[i];
		/* relaxed: advice; and compared with a clock. */
		uint64_t seen_ns = weft__load(&other->seen_ns, relaxed);
		/* relaxed: the same. */
		uint64_t woken_ns = weft__load(&other->woken_ns, relaxed);

		if (seen_ns)
			lower.awake += is_recent(seen_ns, now_ns);
		else if (weft__idle_listed(&runtime->idle, i))
			lower.asleep++;
		else
			lower.awake += is_recent(woken_ns, now_ns);
	}
	return lower;
}

static bool any_loaded(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;

	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__worker *other = runtime->workers[i];

		/* relaxed: compared with a clock. */
		if (other != worker && weft__load(&other->seen_ns, relaxed) &&
		    is_loaded(other, now_ns))
			return true;
	}
	return false;
}

bool weft__worker_limit_is_beyond(struct weft__worker *worker, uint64_t now_ns)
{
	struct lower lower;

	/* relaxed: the owner's own. */
	if (!worker->limit.drained && !weft__load(&worker->serves, relaxed))
		return false;
	if (any_loaded(worker, now_ns))
		return false;
	lower = count_lower(worker, now_ns);
	/* relaxed: advice. */
	return lower.awake + lower.asleep >=
	       weft__load(&worker->runtime->worker_limit.max, relaxed);
}

static void take_all(struct weft__runq *queue, struct weft__chain *chain)
{
	struct weft__task *task;

	while ((task = weft__runq_pop(queue)))
		weft__chain_add(chain, task);
}

/* Wakes a worker if too few run of those that may. */
static void wake_lower(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;

	/* relaxed: advice. */
	if (count_lower(worker, now_ns).awake >=
	    weft__load(&runtime->worker_limit.max, relaxed))
		return;
	weft__wake_lowest(runtime, worker);
}

void weft__worker_limit_hand_over(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;
	struct weft__chain chain = { 0 };

	weft__lifo_queue(worker);
	take_all(&worker->runq, &chain);
	take_all(&worker->outbound, &chain);
	weft__spawn_queue_empty(worker, &chain);
	worker->backlog = worker->overflow = false;
	worker->notify = false;
	if (chain.count) {
		weft__count(worker, WEFT__N_GIVEN_WAY, chain.count);
		weft__inject_push(&runtime->inject, &chain);
	}
	if (weft__inject_length(&runtime->inject))
		wake_lower(worker, now_ns);
}

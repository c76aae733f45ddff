/* SPDX-License-Identifier: MIT */
/*
 * Worker limit - how the limit is judged, and which workers are beyond it.
 *
 * At the end of a tick, when a window has passed, a worker compares the time
 * that its thread waited for a processor with the window.  More than a tenth
 * lowers the limit.  Otherwise the limit is raised by one after a hold, which
 * doubles with each trial that fails.  A worker is beyond the limit if at least
 * that many workers with lower numbers run, or sleep and could be woken, and no
 * other worker computes.  The reasons are in worker_limit.h.
 *
 * Concurrency: any worker may change the limit; the CAS of `changed_ns` admits
 * one at a time.  Each relaxed access is advice unless its note says otherwise.
 */
#include "runtime/sched/worker_limit.h"

/* A worker that waits for more than one part in SHARE of the time waits too
 * much. */
enum { SHARE = 10 };

/* A window longer than that was mostly sleep, and shows nothing. */
#define WINDOW_MAX_NS (4 * WEFT__WORKER_LIMIT_WINDOW_NS)

/* A worker that is tried and found one too many within TRIAL_NS was not needed:
 * the next trial comes later, at most HOLD_MAX_NS later. */
#define TRIAL_NS (16 * WEFT__WORKER_LIMIT_WINDOW_NS)
#define HOLD_MAX_NS 4000000000u

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

/* The limit as a worker has found it, and the time; and then the limit that it
 * sets. */
struct change {
	uint64_t changed_ns, now_ns;
	uint64_t hold_ns;
	uint32_t max;
	bool tries;
};

/* One worker changes the limit at a time, and the next one only after a window
 * of its own. */
static void limit_change(struct weft_runtime *runtime, struct change *change)
{
	struct weft__worker_limit *limit = &runtime->worker_limit;

	/* relaxed: advice. */
	if (!weft__cas(&limit->changed_ns, &change->changed_ns, change->now_ns,
		       relaxed))
		return;
	/* relaxed: advice. */
	weft__store(&limit->hold_ns, change->hold_ns, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->cpu_idle_ns, runtime->ops->cpu_idle(runtime),
		    relaxed);
	/* relaxed: advice. */
	weft__store(&limit->max, change->max, relaxed);
	/* relaxed: advice. */
	weft__store(&limit->tries, change->tries, relaxed);
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void limit_lower(struct weft_runtime *runtime, struct change *change)
{
	uint32_t running = workers_running(runtime);

	if (!change->tries || change->now_ns - change->changed_ns >= TRIAL_NS)
		change->hold_ns = WEFT__WORKER_LIMIT_HOLD_NS;
	else if (change->hold_ns < HOLD_MAX_NS)
		change->hold_ns *= 2;
	if (change->max == 1)
		return;
	/* After a trial as before it.  Otherwise as many as run now, which the
	 * next window shows; but few workers may run now by chance. */
	if (change->tries || running >= change->max)
		change->max--;
	else
		change->max = most(running, change->max / 2);
	change->tries = false;
	limit_change(runtime, change);
}

/* Since the limit was changed: was half a processor idle, or can that not be
 * measured? */
static bool processors_were_free(struct weft_runtime *runtime,
				 const struct change *change)
{
	uint64_t cpu_idle_ns = runtime->ops->cpu_idle(runtime);
	/* relaxed: advice. */
	uint64_t before_ns =
		weft__load(&runtime->worker_limit.cpu_idle_ns, relaxed);

	return !cpu_idle_ns || cpu_idle_ns - before_ns >=
				    (change->now_ns - change->changed_ns) / 2;
}

static void limit_raise(struct weft_runtime *runtime, struct change *change)
{
	if (change->max == runtime->workers_count ||
	    change->now_ns - change->changed_ns < change->hold_ns)
		return;
	/* Without a free processor one more worker does no more than the others
	 * could, except for its fair share of the processors. */
	if (change->hold_ns < HOLD_MAX_NS &&
	    !processors_were_free(runtime, change)) {
		/* relaxed: advice. */
		weft__store(&runtime->worker_limit.hold_ns, 2 * change->hold_ns,
			    relaxed);
		return;
	}
	if (change->tries) /* the one before was needed */
		change->hold_ns = WEFT__WORKER_LIMIT_HOLD_NS;
	change->max++;
	change->tries = true;
	limit_change(runtime, change);
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
		.max = weft__load(&limit->max, relaxed),
		/* relaxed: advice. */
		.tries = weft__load(&limit->tries, relaxed),
	};
}

/* Are most of the worker's runs since the last look short, and due to
 * completions? */
static bool look_at_runs(struct weft__worker *worker)
{
	/* relaxed: the owner's own. */
	uint64_t polls = weft__load(&worker->counts[WEFT__N_POLLS], relaxed);
	uint64_t completions =
		/* relaxed: the same. */
		weft__load(&worker->counts[WEFT__N_COMPLETIONS], relaxed);
	bool serves = completions - worker->limit.completions >
			      (polls - worker->limit.polls) / 2 &&
		      worker->tick.average_ns < WEFT__TICK_NS / 2;

	worker->limit.polls = polls;
	worker->limit.completions = completions;
	return serves;
}

/* Without a monitor the limit stays off: no worker would help when one that
 * runs is late. */
void weft__worker_limit_judge(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;
	uint64_t window_ns = now_ns - worker->limit.looked_ns;
	struct change change = limit_now(&runtime->worker_limit, now_ns);
	bool whole = worker->limit.looked_ns >= change.changed_ns &&
		     window_ns < WINDOW_MAX_NS;
	uint64_t waited_ns;

	worker->limit.looked_ns = now_ns;
	/* relaxed: advice. */
	weft__store(&worker->serves, look_at_runs(worker), relaxed);
	if (runtime->workers_count == 1 || runtime->monitor_off ||
	    now_ns < change.changed_ns)
		return;
	waited_ns = worker->limit.waited_ns;
	worker->limit.waited_ns = worker->ops->waited(worker);
	waited_ns = worker->limit.waited_ns - waited_ns;
	if (whole && waited_ns > window_ns / SHARE)
		limit_lower(runtime, &change);
	else
		limit_raise(runtime, &change);
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

/* SPDX-License-Identifier: MIT */
/*
 * Sched - a worker's loop, one step at a time.
 *
 *	tick:	look at the clock; time, submissions, completions (driver poll)
 *		look at one other worker in turn, if it is due
 *		run tasks until the budget of 128 runs or 200 us is spent
 *		retune the interval and the clock
 *	nothing left:	search in the other queues; else park
 *
 * In a foreign loop a park does not wait.  The step returns while the worker
 * rests: it is asleep for all others, and its thread is elsewhere until
 * weft__worker_rouse().
 *
 * A step blocks only in the wait of the driver's park, so tests run any number
 * of workers in one thread, a step at a time, by a clock of their own.
 *
 * Orderings
 *   [park.token]  park_word is written by swaps and a CAS, so a token is never
 *       lost: a wake that comes before the sleep makes the sleep's CAS fail; a
 *       wake that comes after the sleep has begun ends the sleep.
 */
#include "runtime/sched/monitor.h"
#include "runtime/sched/runtime.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/steal.h"
#include "runtime/sched/upcalls.h"
#include "runtime/sched/wait.h"
#include "runtime/sched/worker.h"
#include "runtime/sched/worker_limit.h"

/* The interval at which a busy worker looks at another one. */
#define LOOK_NS 500000u

/* The injection queue's tasks wait for WEFT__TURN_NS at most, and a tick ends
 * after WEFT__TICK_NS; both may be late by the runs between two looks at the
 * clock, which takes about 2% of the time of runs of a microsecond. */
enum { INTERVAL_MIN = 8, INTERVAL_MAX = 255, CLOCK_MAX = 128 };
#define CLOCK_TARGET_NS 1000u

/*
 * The tick.
 */

/* Returns the first task to run if it is the injection queue's turn. */
static struct weft__task *tick_begin(struct weft__worker *worker)
{
	struct weft__task *first;
	uint64_t now_ns = worker->tick.ended_ns ? worker->tick.ended_ns :
					     worker->ops->now(worker->runtime);

	/* relaxed: helpers compare it with a clock. */
	weft__store(&worker->seen_ns, now_ns, relaxed);
	if (worker->limit.drained)
		/* relaxed: the same. */
		weft__store(&worker->drained_ns, now_ns, relaxed);
	worker->ops->poll(worker, now_ns);
	if (worker->runtime->workers_count > 1 &&
	    now_ns - worker->tick.looked_ns >= LOOK_NS)
		weft__help_next(worker, now_ns);
	weft__inbox_drain(worker);
	if (weft__unlikely(weft__stack_wait_any(&worker->runtime->stack_wait)))
		weft__stack_wait_serve(worker, now_ns);
	worker->limit.gives_way = !worker->limit.stays &&
			    weft__worker_limit_gives_way(worker, now_ns);
	worker->limit.stays = false;
	if (weft__unlikely(worker->limit.gives_way))
		weft__worker_limit_hand_over(worker, now_ns);
	/* The runs are timed, not the polling.  After a sleep there is little
	 * to poll. */
	worker->tick.began_ns = worker->wake.woken ? now_ns :
					  worker->ops->now(worker->runtime);
	/* Before it slept it found the queue empty. */
	if (worker->wake.woken)
		worker->tick.turn_ns = now_ns;
	worker->wake.woken = false;
	worker->tick.clock_ns = worker->tick.began_ns;
	worker->tick.budget = worker->tick.budget_max;
	/* A chain through the LIFO slot that has used up a tick goes behind the
	 * others.  Otherwise it would go on for ever, a tick at a time. */
	worker->lifo_run = worker->tick_over ? WEFT__LIFO_MAX : 0;
	worker->tick_over = false;
	worker->tick.ran = false;
	/* relaxed: the owner's own. */
	worker->tick.polls_before = weft__load(&worker->counts[WEFT__N_POLLS],
					relaxed);
	first = weft__turn_if_due(worker, worker->tick.began_ns);
	worker->tick.runs_tasks = true;
	weft__fuse_set(worker);
	if (!first)
		worker->fuse++; /* it burns down before a run */
	if (worker->wake.watches && (first || !weft__alone(worker)))
		weft__monitor_ran(worker, now_ns);
	return first;
}

static uint32_t clamp(uint64_t value, uint32_t min, uint32_t max)
{
	return value < min ? min : value > max ? max : (uint32_t)value;
}

/* Moving average of a run's time, 0.1 new and 0.9 old, weighted with the share
 * of a tick's budget that the sample stands for.  The intervals follow from
 * it. */
static void tick_retune(struct weft__worker *worker, uint64_t now_ns,
			uint32_t runs)
{
	uint64_t sample_ns = (now_ns - worker->tick.began_ns) / runs;
	uint64_t weight = runs > 16 ? 16 : runs;

	worker->tick.average_ns = (worker->tick.average_ns * (160 - weight) +
			      sample_ns * weight) / 160;
	if (worker->tick.average_ns == 0)
		worker->tick.average_ns = 1;
	if (sample_ns >= WEFT__TICK_NS)
		/* relaxed: a preference. */
		weft__store(&worker->runtime->idle.spared_claims,
			    WEFT__IDLE_SPARED_CLAIMS, relaxed);
	worker->tick.inject_interval =
		clamp(WEFT__TURN_NS / worker->tick.average_ns,
		      INTERVAL_MIN, INTERVAL_MAX);
	if (weft__unlikely(worker->runtime->turn_off))
		worker->tick.inject_interval = INT32_MAX;
	worker->tick.clock_every =
		clamp((CLOCK_TARGET_NS - 1) / worker->tick.average_ns + 1, 1,
		      CLOCK_MAX);
}

static void tick_end(struct weft__worker *worker)
{
	int32_t burnt = worker->fuse_set - worker->fuse;
	/* relaxed: the owner's own. */
	uint64_t runs = weft__load(&worker->counts[WEFT__N_POLLS], relaxed) -
			worker->tick.polls_before;

	worker->tick.until_inject -= burnt;
	weft__count(worker, WEFT__N_TICKS, 1);
	worker->tick.ended_ns = worker->tick.clock_ns;
	/* Has anything run since the clock was read? */
	if (burnt > 0) {
		worker->tick.ended_ns = worker->ops->now(worker->runtime);
		weft__note_longest(worker, worker->tick.ended_ns, burnt);
	}
	if (runs > 0)
		tick_retune(worker, worker->tick.ended_ns, (uint32_t)runs);
	worker->tick.runs_tasks = false;
	weft__worker_limit_look(worker, worker->tick.ended_ns);
	if (worker->unfenced || worker->notify)
		weft__notify_peers_fenced(worker);
}

/* Runs one task until control is back with the scheduler: others may run in
 * between. */
static void run(struct weft__worker *worker, struct weft__task *task)
{
	if (!task->stack) {
		if (weft__task_is_future(task)) {
			weft__future_poll(worker, task);
			return;
		}
		if (!weft__bind(worker, task))
			return;
	}
	worker->current = task;
	worker->ops_left = WEFT__OPS_BUDGET;
	worker->tick.ran = true;
	weft__context_switch(&worker->sched_sp, task->sp, NULL, task->stack,
			     worker);
	weft__arrive(worker);
}

/* First the future for which a task was left and which that task could not run
 * itself. */
static struct weft__task *next(struct weft__worker *worker)
{
	struct weft__task *handed = worker->handed;

	if (weft__unlikely(handed != NULL)) {
		worker->handed = NULL;
		return handed;
	}
	return worker->tick_over ? NULL : weft__pick(worker);
}

static bool shared_work(struct weft__worker *worker)
{
	return weft__inject_length(&worker->runtime->inject) ||
	       /* relaxed: a pusher writes park_word afterwards,
	        * [park.token]. */
	       weft__load(&worker->inbox, relaxed);
}

/* Is there anything that this worker could run?  Reads what pushers write
 * before they read the counts.  pairs: [idle.push] */
static bool any_work(struct weft__worker *worker)
{
	struct weft__idle *idle = &worker->runtime->idle;

	if (shared_work(worker))
		return true;
	for (uint32_t word = 0; word < idle->words; word++) {
		uint64_t awake = weft__idle_awake(idle, word);

		for (; awake; awake &= awake - 1) {
			weft__visit(worker, 1);
			if (weft__has_work(weft__peer_in(worker, word, awake)))
				return true;
		}
	}
	return false;
}

/* A searcher stops because it found work; the last one wakes the next. */
static void found(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	worker->wake.searching = false;
	worker->wake.claimed = false;
	/* A pusher that saw a searcher has woken no worker. */
	if (weft__idle_found(&runtime->idle) &&
	    !weft__worker_limit_suffices(worker) &&
	    any_work(worker))			 /* mutate: recheck=false */
		weft__wake_one(runtime, worker); /* mutate: wake */
}

static void tick(struct weft__worker *worker)
{
	struct weft__task *task = tick_begin(worker);

	if (!task)
		task = weft__pick(worker);
	else if (worker->notify)
		weft__notify_peers(worker);
	/* Woken to search, this worker found work of its own.  That may take
	 * long, and pushers rely on those that search. */
	if (task && worker->wake.searching)
		found(worker);
	while (task) {
		run(worker, task);
		task = next(worker);
	}
	tick_end(worker);
}

/*
 * Searching and parking.
 */

/* False for a worker that gives way, and when enough search already. */
static bool begin_search(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	if (worker->limit.gives_way)
		return false;
	if (!worker->wake.searching && runtime->workers_count > 1)
		worker->wake.searching = weft__idle_search(&runtime->idle);
	return worker->wake.searching || runtime->workers_count == 1;
}

/* Tries those workers of a word, the lowest first. */
static struct weft__task *steal_in_word(struct weft__worker *worker,
					uint32_t word, uint64_t victims)
{
	struct weft__task *task = NULL;

	for (; !task && victims; victims &= victims - 1) {
		struct weft__worker *victim =
			weft__peer_in(worker, word, victims);

		if (victim == worker)
			continue;
		weft__visit(worker, 1);
		task = weft__steal(worker, victim, WEFT__SPILL);
	}
	return task;
}

/* One round: the injection queue, every other ring from a random one on, the
 * injection queue again.  The first word comes twice, for the rings from that
 * one on, and for those before it. */
static struct weft__task *search(struct weft__worker *worker)
{
	struct weft__idle *idle = &worker->runtime->idle;
	uint32_t start = weft__random(worker) % idle->workers;
	uint64_t from = UINT64_MAX << start % 64;
	struct weft__task *task = weft__take_injected(worker);

	for (uint32_t i = 0; !task && i <= idle->words; i++) {
		uint32_t word = (start / 64 + i) % idle->words;
		uint64_t victims = weft__idle_awake(idle, word);

		if (i == 0)
			victims &= from;
		else if (i == idle->words)
			victims &= ~from;
		task = steal_in_word(worker, word, victims);
	}
	return task ? task : weft__take_injected(worker);
}

static struct weft__task *look_elsewhere(struct weft__worker *worker)
{
	if (begin_search(worker))
		return search(worker);
	/* Under a worker limit one that counts as searching may have no
	 * processor. */
	if (!worker->limit.gives_way &&
	    weft__worker_limit_limits(worker->runtime))
		return weft__take_injected(worker);
	return NULL;
}

/* The worker runs again.  True: only to be the monitor. */
static bool unparked(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	worker->wake.searching = worker->wake.claimed =
		weft__idle_unpark(&runtime->idle, worker->index);
	worker->wake.parked = false;
	/* pairs: [park.token] */
	weft__swap(&worker->park_word, (uint32_t)WEFT__PARK_EMPTY, acq_rel);
	if (!weft__monitor_came(worker))
		return false;
	worker->wake.claimed = false;
	return true;
}

/* After the driver's park: was the worker woken, or does the monitor look at
 * the others? */
static void park_end(struct weft__worker *worker)
{
	uint64_t now_ns = worker->ops->now(worker->runtime);
	bool overlooked = weft__monitor_overlooked(worker);
	bool appointed = unparked(worker);

	worker->tick.ended_ns = now_ns;
	worker->wake.woken = true;
	/* relaxed: helpers compare it with a clock. */
	weft__store(&worker->seen_ns, now_ns, relaxed);
	if (worker->wake.watches && !worker->wake.searching &&
	    weft__alone(worker)) {
		weft__monitor_look(worker, now_ns, overlooked);
		return;
	}
	if (!appointed)
		weft__monitor_ran(worker, now_ns);
}

/* How long stacks are free before they give their memory back; and the time
 * from one part of that to the next. */
#define TRIM_NS 1000000000u
#define TRIM_MORE_NS 10000000u

/* Before it sleeps, worker 0 gives memory back that was in use at a peak. */
static void trim(struct weft__worker *worker)
{
	struct weft__stacks *stacks = &worker->runtime->stacks;
	uint64_t now_ns;

	if (weft__likely(!weft__stacks_have_excess(stacks)) || worker->index)
		return;
	now_ns = worker->ops->now(worker->runtime);
	if (now_ns >= stacks->look_ns)
		stacks->look_ns = now_ns + (weft__stacks_trim(stacks) ?
						    TRIM_MORE_NS :
						    TRIM_NS);
}

static uint64_t trim_wait_ns(struct weft__worker *worker, uint64_t wait_ns)
{
	struct weft__stacks *stacks = &worker->runtime->stacks;
	uint64_t now_ns;

	if (weft__likely(!weft__stacks_have_excess(stacks)) || worker->index)
		return wait_ns;
	now_ns = worker->ops->now(worker->runtime);
	if (stacks->look_ns <= now_ns)
		return 0;
	return stacks->look_ns - now_ns < wait_ns ? stacks->look_ns - now_ns :
						    wait_ns;
}

/* The monitor's bound.  While tasks wait for a stack, a shorter one: some
 * worker has to ask for memory again. */
static uint64_t sleep_ns(struct weft__worker *worker)
{
	uint64_t wait_ns = weft__monitor_wait_ns(worker);

	wait_ns = trim_wait_ns(worker, wait_ns);
	if (weft__unlikely(
		    weft__stack_wait_any(&worker->runtime->stack_wait)) &&
	    wait_ns > WEFT__STACK_WAIT_RETRY_NS)
		wait_ns = WEFT__STACK_WAIT_RETRY_NS;
	return weft__stop_wait_ns(worker, wait_ns);
}

/* The worker does not sleep after all. */
static void park_abort(struct weft__worker *worker)
{
	worker->ops->park_abort(worker);
	/* A monitor that saw this worker as asleep may have retired. */
	if (!unparked(worker) && !worker->wake.watches)
		weft__monitor_ran(worker,
				   worker->ops->now(worker->runtime));
}

/* Would work be left to no worker, if this one slept?  A worker that gives way
 * has left it to those that run; and a ring's owner, which alone puts tasks
 * there, is awake. */
static bool is_forgotten(struct weft__worker *worker)
{
	if (!worker->limit.gives_way)
		return any_work(worker);
	return weft__all_parked(worker->runtime) && shared_work(worker);
}

void weft__worker_rouse(struct weft__worker *worker)
{
	worker->rest.rests = false;
	worker->ops->rouse(worker);
	park_end(worker);
}

/* Sleeps while the thread is elsewhere. */
static void rest(struct weft__worker *worker, uint64_t wait_ns)
{
	worker->rest.until_ns = worker->ops->rest(worker, wait_ns);
	worker->rest.rests = true;
	if (!worker->rest.until_ns)
		weft__worker_rouse(worker);
}

/* Announces that it parks, looks once more, and sleeps. */
static void park(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t empty = WEFT__PARK_EMPTY;
	bool searched = worker->wake.searching, last;

	trim(worker);
	if (worker->wake.claimed)
		weft__count(worker, WEFT__N_WAKES_WASTED, 1);
	worker->wake.claimed = false;
	worker->wake.searching = false;
	/* From here on no other worker takes this one's completions, so none is
	 * missed between the last look and the sleep. */
	worker->ops->park_begin(worker);
	worker->wake.parked = true;
	worker->tick.ended_ns = 0;
	/* relaxed: helpers compare it with a clock; 0: it needs no help. */
	weft__store(&worker->seen_ns, (uint64_t)0, relaxed);
	last = weft__idle_park(&runtime->idle, worker->index, searched);
	if (last && is_forgotten(worker)) { /* mutate: recheck=false */
		worker->limit.stays = true;
		park_abort(worker);
		return;
	}
	/* relaxed: a look; a runtime that stops later writes park_word. */
	if (weft__load(&runtime->stopping, relaxed) == WEFT__STOP_NOW ||
	    /* pairs: [park.token] */
	    !weft__cas(&worker->park_word, &empty, (uint32_t)WEFT__PARK_SLEEPS,
		       acq_rel)) {
		park_abort(worker);
		return;
	}
	weft__count(worker, WEFT__N_PARKS, 1);
	if (weft__unlikely(worker->rest.wanted)) {
		rest(worker, sleep_ns(worker));
		return;
	}
	worker->ops->park(worker, sleep_ns(worker));
	park_end(worker);
}

bool weft__worker_step(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	struct weft__task *task;

	/* pairs: [runtime.stop]; once a tick. */
	if (weft__load(&runtime->stopping, acquire) != WEFT__STOP_NOT &&
	    !weft__stop_step(worker))
		return false;
	tick(worker);
	worker->limit.drained = weft__alone(worker);
	/* A worker that has run all it had sleeps immediately: the call that
	 * waits also submits what the tasks have queued. */
	if (!worker->limit.drained)
		return true; /* IDLE5 */
	if (worker->tick.ran &&
	    (worker->ops->pending(worker) ||
	     weft__stack_wait_any(&runtime->stack_wait)))
		return true;
	task = look_elsewhere(worker);
	if (task) {
		weft__push_next(worker, task);
		worker->limit.drained = false;
		if (worker->wake.searching)
			found(worker);
		return true;
	}
	park(worker);
	return true;
}

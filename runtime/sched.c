/* SPDX-License-Identifier: MIT */
/*
 * Sched - a worker's loop, one step at a time.
 *
 *	tick:	look at the clock; time, submissions, completions (driver poll)
 *		look at one other worker in turn, if it is due
 *		run tasks until the budget of 128 runs or 200 us is spent
 *		retune the interval and the clock
 *	nothing ran:	search in the other queues; else park
 *
 * A step never blocks but in the driver's park, so four workers can be stepped
 * in one thread by a driver with a clock of its own.
 *
 * Orderings
 *   [park.token]  park_word is written by swaps and a CAS, so a token is never
 *       lost: a wake that comes before the sleep makes the sleep's CAS fail;
 *       one that comes after it ends it.
 *   [sentinel.retire]  seq_cst: who retires stores `sentinel` and then reads
 *       the counts; who wakes lowers the counts and then reads `sentinel`.  A
 *       store followed by a load of another location, on both sides.
 */
#include "runtime/crowd.h"
#include "runtime/runtime.h"
#include "runtime/wait.h"
#include "runtime/worker.h"

/* How often a busy worker looks at another one. */
#define LOOK_NS 500000u

/* The shortest sleep of the sentinel. */
#define WATCH_LEAST_NS 100000u

/* The interval of the injection queue: its tasks wait for 1 ms at most while a
 * run takes what it takes on average. */
enum { INTERVAL_LEAST = 8, INTERVAL_MOST = 255, CLOCK_MOST = 128 };
#define INTERVAL_TARGET_NS 1000000u
#define CLOCK_TARGET_NS 25000u

static uint32_t random_next(struct weft__worker *worker)
{
	/* xorshift64 (Marsaglia 2003). */
	uint64_t x = worker->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	worker->random = x;
	return (uint32_t)(x >> 32);
}

static struct weft__worker *peer(struct weft__worker *worker, uint32_t i)
{
	struct weft_runtime *runtime = worker->runtime;

	return runtime->workers[i % runtime->workers_count];
}

/*
 * Stealing and helping.
 */

/* Half of a ring, at most so many: the oldest to run now, the rest into our own
 * ring. */
static struct weft__task *steal_ring(struct weft__worker *worker,
				     struct weft__runq *from, uint32_t most)
{
	struct weft__task *first;
	struct weft__claim claim;

	if (!weft__runq_claim(from, 2, most, &claim))
		return NULL;
	first = weft__runq_claimed(from, &claim, 0);
	for (uint32_t i = 1; i < claim.count; i++)
		if (!weft__runq_push(&worker->runq,
				     weft__runq_claimed(from, &claim, i)))
			weft__push_slow(worker,
					weft__runq_claimed(from, &claim, i));
	weft__runq_release(from);
	weft__count(worker, WEFT__N_STEALS_WON, 1);
	weft__count(worker, WEFT__N_STOLEN, claim.count);
	if (claim.count > 1)
		worker->notify = true;
	return first;
}

static struct weft__task *steal_from(struct weft__worker *worker,
				     struct weft__worker *victim, uint32_t most)
{
	struct weft__task *task;

	weft__count(worker, WEFT__N_STEALS_TRIED, 1);
	task = steal_ring(worker, &victim->runq, most);
	return task ? task : steal_ring(worker, &victim->outbound, most);
}

static bool worker_late(struct weft__worker *worker, uint64_t now_ns)
{
	/* relaxed: compared with a clock. */
	uint64_t seen_ns = weft__load(&worker->seen_ns, relaxed);

	return seen_ns && now_ns > seen_ns && now_ns - seen_ns > WEFT__LATE_NS;
}

/* A worker has computed for too long: its completions, its submissions, its
 * timers, and what sits in its LIFO slot.  Its ring is stolen from as usual. */
static unsigned help(struct weft__worker *worker, struct weft__worker *late,
		     uint64_t now_ns)
{
	struct weft__task *task = weft__lifo_take(late);
	struct weft__task *joiner = weft__joining_take(late);
	unsigned found = worker->ops->help(worker, late, now_ns);

	if (joiner && !weft__joiner_park(joiner)) {
		weft__push(worker, joiner); /* mutate: wake */
		found++;
	}
	if (task) {
		weft__push(worker, task);
		found++;
	}
	/* A helper may have much to do itself. */
	task = steal_from(worker, late, weft__harvest_room(worker));
	if (task) {
		weft__push(worker, task);
		found++;
	}
	weft__count(worker, WEFT__N_HELPS, 1);
	return found;
}

/* A busy worker's look at one other, in rotation. */
static void look_at_another(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;
	struct weft__worker *other;

	worker->looked_ns = now_ns;
	if (runtime->help_off)
		return;
	if (worker->next_help == worker->index)
		worker->next_help++;
	other = peer(worker, worker->next_help);
	worker->next_help = (other->index + 1) % runtime->workers_count;
	if (other != worker && worker_late(other, now_ns))
		(void)help(worker, other, now_ns);
}

/*
 * The sentinel: while some worker runs and others sleep, one sleeper looks up
 * every millisecond, until nothing has happened for 100 ms.  (Not every two: a
 * kernel may put the thread that looks up on the core of the one that computes,
 * where it waits for the next clock tick, up to 4 ms; measured: 1 to 4.)
 */

static bool is_sentinel(struct weft__worker *worker)
{
	/* relaxed: only this worker puts its own number there, and who takes it
	 * away has claimed and wakes it. */
	return weft__load(&worker->runtime->sentinel, relaxed) ==
	       worker->index + 1;
}

static bool all_parked(struct weft_runtime *runtime)
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

/* Until the first of the others will be late, unless it is seen before. */
static uint64_t watch_ns(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint64_t now_ns = runtime->ops->now(runtime);
	uint64_t wait_ns = WEFT__LATE_NS;

	for (uint32_t i = 1; i < runtime->workers_count; i++) {
		/* relaxed: compared with a clock. */
		uint64_t seen_ns = weft__load(
			&peer(worker, worker->index + i)->seen_ns, relaxed);
		uint64_t late_ns = seen_ns + WEFT__LATE_NS + WATCH_LEAST_NS;

		if (seen_ns && late_ns < now_ns + wait_ns)
			wait_ns = late_ns > now_ns + WATCH_LEAST_NS ?
					  late_ns - now_ns :
					  WATCH_LEAST_NS;
	}
	return wait_ns;
}

/* How long this worker, which is announced as parked, may sleep.  When it
 * retires, either it sees one that runs, or that one sees that there is no
 * sentinel and appoints one: [sentinel.retire]. */
static uint64_t park_wait_ns(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t nobody = 0;

	if (runtime->sentinel_off || runtime->workers_count == 1)
		return WEFT_NEVER;
	/* pairs: [sentinel.retire] */
	if (!is_sentinel(worker) &&
	    !weft__cas(&runtime->sentinel, &nobody, worker->index + 1, seq_cst))
		return WEFT_NEVER;
	worker->watches = true;
	if (!all_parked(runtime) ||
	    !quiet(worker, worker->ops->now(runtime)))
		return watch_ns(worker);
	worker->watches = false;
	weft__sentinel_resign(runtime, worker->index);
	if (all_parked(runtime)) { /* mutate: recheck=true */
		weft__stacks_trim(runtime);
		return WEFT_NEVER;
	}
	nobody = 0;
	/* pairs: [sentinel.retire] */
	worker->watches = weft__cas(&runtime->sentinel, &nobody,
				    worker->index + 1, seq_cst);
	return worker->watches ? watch_ns(worker) : WEFT_NEVER;
}

/* This worker runs again after a sleep: somebody must look after it. */
static void appoint_sentinel(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	int index;

	if (runtime->sentinel_off || runtime->workers_count == 1 ||
	    /* pairs: [sentinel.retire] */
	    weft__load(&runtime->sentinel, seq_cst))
		return;
	index = weft__idle_claim_any(&runtime->idle);
	if (index < 0)
		return;
	weft__count(worker, WEFT__N_WAKES_SENT, 1);
	weft__unpark(worker, runtime->workers[index]); /* mutate: wake */
}

/* This worker has something to run after a sleep: if it watched, from here on
 * another one does. */
static void active_again(struct weft__worker *worker, uint64_t now_ns)
{
	/* relaxed: compared with a clock. */
	weft__store(&worker->runtime->active_ns, now_ns, relaxed);
	if (worker->watches)
		weft__sentinel_resign(worker->runtime, worker->index);
	worker->watches = false;
	appoint_sentinel(worker);
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
		overlooked &= weft__load(&peer(worker, worker->index + i)
						  ->park_word,
					 relaxed) == WEFT__PARK_SLEEPS;
	weft__lock_drop(&runtime->inject.lock);
	return overlooked;
}

/* The sentinel has looked up without being woken. */
static void sentinel_look(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft_runtime *runtime = worker->runtime;

	for (uint32_t i = 1; i < runtime->workers_count; i++) {
		struct weft__worker *other = peer(worker, worker->index + i);

		if (worker_late(other, now_ns) && !runtime->help_off)
			(void)help(worker, other, now_ns);
	}
	if (is_overlooked(worker))
		weft__count(worker, WEFT__N_RESCUES, 1);
}

/*
 * The tick.
 */

/* Returns the first to run if it is the injection queue's turn. */
static struct weft__task *tick_begin(struct weft__worker *worker)
{
	struct weft__task *first = NULL;
	uint64_t now_ns = worker->ended_ns ? worker->ended_ns :
					     worker->ops->now(worker->runtime);

	/* relaxed: helpers compare it with a clock. */
	weft__store(&worker->seen_ns, now_ns, relaxed);
	if (worker->drained)
		/* relaxed: likewise. */
		weft__store(&worker->drained_ns, now_ns, relaxed);
	worker->ops->poll(worker, now_ns);
	if (worker->runtime->workers_count > 1 &&
	    now_ns - worker->looked_ns >= LOOK_NS)
		look_at_another(worker, now_ns);
	weft__inbox_drain(worker);
	if (weft__unlikely(weft__starved_any(&worker->runtime->starved)))
		weft__starved_serve(worker, now_ns);
	worker->gives_way = weft__crowd_gives_way(worker, now_ns);
	if (weft__unlikely(worker->gives_way))
		weft__crowd_hand_over(worker);
	/* The runs are timed, not the polling. */
	worker->tick_ns = worker->ops->now(worker->runtime);
	worker->clock_ns = worker->tick_ns;
	worker->budget = worker->tick_budget;
	/* A chain through the slot that has used up a tick goes behind the
	 * others: else it would go on for ever, a tick at a time. */
	worker->lifo_run = worker->tick_over ? WEFT__LIFO_MOST : 0;
	worker->tick_over = false;
	worker->ran = false;
	/* relaxed: the owner's own. */
	worker->tick_polls = weft__load(&worker->counts[WEFT__N_POLLS],
					relaxed);
	if (worker->until_inject <= 0) {
		worker->until_inject = (int32_t)worker->interval;
		first = weft__take_turn(worker);
	}
	weft__fuse_set(worker);
	if (!first)
		worker->fuse++; /* it burns down before a run */
	if (worker->watches && (first || !weft__alone(worker)))
		active_again(worker, now_ns);
	return first;
}

static uint32_t clamp(uint64_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : (uint32_t)value;
}

/* Moving average of a run's time, 0.1 new and 0.9 old, weighted by how much of
 * a tick's budget the sample stands for; the intervals follow from it. */
static void tick_retune(struct weft__worker *worker, uint64_t now_ns,
			uint32_t runs)
{
	uint64_t sample_ns = (now_ns - worker->tick_ns) / runs;
	uint64_t weight = runs > 16 ? 16 : runs;

	worker->average_ns = (worker->average_ns * (160 - weight) +
			      sample_ns * weight) / 160;
	if (worker->average_ns == 0)
		worker->average_ns = 1;
	worker->interval = clamp(INTERVAL_TARGET_NS / worker->average_ns,
				 INTERVAL_LEAST, INTERVAL_MOST);
	if (weft__unlikely(worker->runtime->turn_off))
		worker->interval = INT32_MAX;
	worker->clock_every =
		clamp(CLOCK_TARGET_NS / worker->average_ns, 1, CLOCK_MOST);
}

static void tick_end(struct weft__worker *worker)
{
	int32_t burnt = worker->fuse_set - worker->fuse;
	/* relaxed: the owner's own. */
	uint64_t runs = weft__load(&worker->counts[WEFT__N_POLLS], relaxed) -
			worker->tick_polls;

	worker->until_inject -= burnt;
	weft__count(worker, WEFT__N_TICKS, 1);
	/* Whoever found that the tick is over has just read the clock. */
	worker->ended_ns = worker->tick_over ?
				   worker->clock_ns :
				   worker->ops->now(worker->runtime);
	if (runs > 0)
		tick_retune(worker, worker->ended_ns, (uint32_t)runs);
	weft__crowd_look(worker, worker->ended_ns);
	if (worker->unfenced || worker->notify)
		weft__tell_peers_fenced(worker);
}

/* Runs one task until control is back with the scheduler: others may run in
 * between. */
static void run(struct weft__worker *worker, struct weft__task *task)
{
	if (!task->stack && !weft__bind(worker, task))
		return;
	worker->current = task;
	worker->ops_left = WEFT__OPS_BUDGET;
	worker->ran = true;
	weft__context_switch(&worker->sched_sp, task->sp, NULL, task->stack,
			     worker);
	weft__arrive(worker);
}

/* Is there anything that this worker could run?  Reads what pushers write
 * before they read the counts.  pairs: [idle.push] */
static bool any_work(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	if (weft__inject_length(&runtime->inject) ||
	    /* relaxed: who pushes there then writes park_word, [park.token]. */
	    weft__load(&worker->inbox, relaxed))
		return true;
	for (uint32_t i = 0; i < runtime->workers_count; i++)
		if (weft__runq_visible(&peer(worker, i)->runq) ||
		    weft__runq_visible(&peer(worker, i)->outbound))
			return true;
	return false;
}

/* A searcher that stops with work; the last one wakes the next. */
static void found(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	worker->searching = false;
	worker->claimed = false;
	/* Who pushed while there was a searcher has woken nobody. */
	if (weft__idle_found(&runtime->idle) && !weft__crowd_suffices(worker) &&
	    any_work(worker)) /* mutate: recheck=false */
		weft__wake_one(runtime, worker); /* mutate: wake */
}

static void tick(struct weft__worker *worker)
{
	struct weft__task *task = tick_begin(worker);

	if (!task)
		task = weft__pick(worker);
	/* Woken to search, it found work of its own; that may take long, and
	 * whoever pushes relies on those that search. */
	if (task && worker->searching)
		found(worker);
	while (task) {
		run(worker, task);
		task = worker->tick_over ? NULL : weft__pick(worker);
	}
	tick_end(worker);
}

/*
 * Searching and parking.
 */

/* Not who gives way, nor too many at a time. */
static bool begin_search(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	if (worker->gives_way)
		return false;
	if (!worker->searching && runtime->workers_count > 1)
		worker->searching = weft__idle_search(&runtime->idle);
	return worker->searching || runtime->workers_count == 1;
}

/* One round: the shared queue, every other ring from a random one on, the
 * shared queue again. */
static struct weft__task *search(struct weft__worker *worker)
{
	uint32_t count = worker->runtime->workers_count;
	uint32_t start = random_next(worker) % count;
	struct weft__task *task = weft__take_injected(worker);

	for (uint32_t i = 0; !task && i < count; i++) {
		struct weft__worker *victim = peer(worker, start + i);

		if (victim != worker)
			task = steal_from(worker, victim, WEFT__SPILL);
	}
	return task ? task : weft__take_injected(worker);
}

/* Back among the running. */
static void unparked(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	worker->searching = worker->claimed =
		weft__idle_unpark(&runtime->idle, worker->index);
	worker->parked = false;
	/* pairs: [park.token] */
	weft__swap(&worker->park_word, (uint32_t)WEFT__PARK_EMPTY, acq_rel);
}

/* After the driver's park: was there a reason, or did the sentinel look up? */
static void park_end(struct weft__worker *worker)
{
	uint64_t now_ns = worker->ops->now(worker->runtime);

	unparked(worker);
	/* relaxed: helpers compare it with a clock. */
	weft__store(&worker->seen_ns, now_ns, relaxed);
	if (worker->watches && !worker->searching && weft__alone(worker)) {
		sentinel_look(worker, now_ns);
		return;
	}
	active_again(worker, now_ns);
}

/* The same, and somebody has to ask for memory again for those who starve. */
static uint64_t sleep_ns(struct weft__worker *worker)
{
	uint64_t wait_ns = park_wait_ns(worker);

	if (weft__unlikely(weft__starved_any(&worker->runtime->starved)) &&
	    wait_ns > WEFT__STARVED_RETRY_NS)
		wait_ns = WEFT__STARVED_RETRY_NS;
	return weft__stop_wait_ns(worker, wait_ns);
}

/* Announces itself, looks once more, and sleeps. */
static void park(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t empty = WEFT__PARK_EMPTY;
	bool searched = worker->searching, last;

	if (worker->claimed)
		weft__count(worker, WEFT__N_WAKES_WASTED, 1);
	worker->claimed = false;
	worker->searching = false;
	/* From here on nobody else takes our completions, so none of them is
	 * missed between the last look and the sleep. */
	worker->ops->park_begin(worker);
	worker->parked = true;
	worker->ended_ns = 0;
	/* relaxed: helpers compare it with a clock; 0: need not be helped. */
	weft__store(&worker->seen_ns, (uint64_t)0, relaxed);
	last = weft__idle_park(&runtime->idle, worker->index, searched);
	/* Who gives way leaves work behind on purpose, to those that run. */
	if (last && (!worker->gives_way || all_parked(runtime)) &&
	    any_work(worker)) { /* mutate: recheck=false */
		worker->ops->park_abort(worker);
		unparked(worker);
		return;
	}
	/* relaxed: a look; a runtime that stops then writes park_word. */
	if (weft__load(&runtime->stopping, relaxed) == WEFT__STOP_NOW ||
	    /* pairs: [park.token] */
	    !weft__cas(&worker->park_word, &empty, (uint32_t)WEFT__PARK_SLEEPS,
		       acq_rel)) {
		worker->ops->park_abort(worker);
		unparked(worker);
		return;
	}
	weft__count(worker, WEFT__N_PARKS, 1);
	if (worker->ops->park(worker, sleep_ns(worker)) == WEFT__PARK_PENDING)
		return;
	park_end(worker);
}

bool weft__worker_step(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	struct weft__task *task;

	if (worker->parked)
		park_end(worker); /* a stepping driver's park is over */
	/* pairs: [runtime.stop]; once a tick. */
	if (weft__load(&runtime->stopping, acquire) != WEFT__STOP_NOT &&
	    !weft__stop_step(worker))
		return false;
	tick(worker);
	worker->drained = weft__alone(worker);
	/* Who has run all there was sleeps at once: the call that waits also
	 * submits what the tasks have queued. */
	if (worker->ran &&
	    (!worker->drained || worker->ops->pending(worker) ||
	     weft__starved_any(&runtime->starved)))
		return true;
	if (begin_search(worker)) {
		task = search(worker);
		if (task) {
			weft__push_next(worker, task);
			worker->drained = false;
			if (worker->searching)
				found(worker);
			return true;
		}
	}
	park(worker);
	return true;
}

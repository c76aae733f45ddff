/* SPDX-License-Identifier: MIT */
/*
 * Dispatch - the steps between two tasks that are rarer than a switch: reports
 * to peers that there is work, full queues, pinned tasks, tasks from other
 * threads, and the refill of an empty ring.  The queues and their order are in
 * worker.h.
 *
 * Orderings
 *   [inbox.push]  inbox CAS release -> swap acquire of the owner's drain: the
 *       task and its link.
 */
#include "runtime/sched/monitor.h"
#include "runtime/sched/runtime.h"
#include "runtime/sched/wait.h"
#include "runtime/sched/worker.h"
#include "runtime/sched/worker_limit.h"

#ifdef WEFT__TLS_INITIAL
extern __thread struct weft__worker *weft__worker_local WEFT__TLS_INITIAL;
#endif
__thread struct weft__worker *weft__worker_local __attribute__((used));

#if defined(__x86_64__) && !defined(WEFT__MODEL)
const char weft__worker_place = 0;
#else
__attribute__((noinline)) struct weft__worker *weft__worker_self(void)
{
	/* The compiler must not know that two calls return the same. */
	__asm__ volatile("" ::: "memory");
	return weft__worker_local;
}
#endif

__attribute__((noinline)) void weft__worker_set(struct weft__worker *worker)
{
	__asm__ volatile("" ::: "memory");
	weft__worker_local = worker;
}

/*
 * Reports to peers.
 */

bool weft__unpark(struct weft__worker *from, struct weft__worker *to)
{
	/* pairs: [park.token] in runtime/sched/sched.c */
	uint32_t old = weft__swap(&to->park_word,
				  (uint32_t)WEFT__PARK_NOTIFIED, release);

	if (old == WEFT__PARK_SLEEPS)
		to->ops->wake(from, to); /* mutate: wake */
	return old == WEFT__PARK_SLEEPS;
}

/* Wakes the claimed worker; -1: none was claimed. */
static void wake_claimed(struct weft_runtime *runtime,
			 struct weft__worker *here, int index)
{
	if (index < 0)
		return;
	weft__worker_limit_claimed(runtime->workers[index]);
	/* Before it runs: a worker that goes to sleep meanwhile takes the
	 * monitor's place. */
	weft__monitor_resign(runtime, (uint32_t)index);
	if (here)
		weft__count(here, WEFT__N_WAKES_SENT, 1);
	weft__unpark(here, runtime->workers[index]); /* mutate: wake */
}

void weft__wake_one(struct weft_runtime *runtime, struct weft__worker *here)
{
	wake_claimed(runtime, here, weft__idle_claim(&runtime->idle));
}

void weft__wake_lowest(struct weft_runtime *runtime, struct weft__worker *here)
{
	wake_claimed(runtime, here, weft__idle_claim_lowest(&runtime->idle));
}

/* One ready task alone is no reason to wake a peer: this worker runs it now. */
static bool has_to_offer(struct weft__worker *worker)
{
	uint32_t count = weft__runq_count(&worker->runq);

	return (count > 1 || worker->backlog ||
		(count && weft__handoff_slot_has(&worker->lifo))) &&
	       !weft__worker_limit_suffices(worker);
}

/* Called at the end of a task's run that pushed. */
void weft__notify_peers(struct weft__worker *worker)
{
	worker->notify = false;
	worker->unfenced = true;
	if (weft__idle_wants_wake(&worker->runtime->idle) &&
	    has_to_offer(worker))
		weft__wake_one(worker->runtime, worker);
}

/* Called within the run of a task that pushes on and on.  Pushes by completions
 * and timers before a tick are reported when it begins. */
void weft__notify_peers_late(struct weft__worker *worker)
{
	if (!worker->tick.runs_tasks ||
	    !weft__idle_wants_wake(&worker->runtime->idle) ||
	    weft__worker_limit_suffices(worker))
		return;
	if (worker->ops->now(worker->runtime) - worker->tick.began_ns >=
	    WEFT__WAKE_NS)
		weft__wake_one(worker->runtime, worker);
}

/* Called before the worker ends a tick: the check that cannot be wrong. */
void weft__notify_peers_fenced(struct weft__worker *worker)
{
	worker->notify = false;
	worker->unfenced = false;
	if (worker->runtime->workers_count > 1 && has_to_offer(worker))
		weft__wake_one(worker->runtime, worker); /* mutate: wake */
}

/*
 * Full queues, pinned tasks, other threads.
 */

/* Moves the chain to the injection queue. */
static void inject_overflow(struct weft__worker *worker,
			    struct weft__chain *chain)
{
	if (!chain->count)
		return;
	weft__count(worker, WEFT__N_OVERFLOWED, chain->count);
	weft__inject_push(&worker->runtime->inject, chain);
}

/* Moves the oldest half of the outbound ring, at most WEFT__SPILL tasks, to the
 * injection queue. */
static void spill(struct weft__worker *worker, struct weft__task *task)
{
	struct weft__chain chain = { 0 };
	struct weft__claim claim;

	if (weft__runq_claim(&worker->outbound, 2, WEFT__SPILL, &claim)) {
		weft__chain_claimed(&chain, &worker->outbound, &claim);
		weft__runq_release(&worker->outbound);
	}
	/* False: a thief is at work, and its slots are not free yet. */
	if (!weft__runq_push(&worker->outbound, task))
		weft__chain_add(&chain, task);
	/* The chain is empty if that thief has just finished. */
	inject_overflow(worker, &chain);
}

/* Tasks that run overflow: from here on those that never ran are part of the
 * one queue in age. */
static void spawn_queue_spill(struct weft__worker *worker)
{
	struct weft__chain chain = { 0 };

	weft__spawn_queue_empty(worker, &chain);
	inject_overflow(worker, &chain);
}

void weft__push_slow(struct weft__worker *worker, struct weft__task *task)
{
	if (task->pin) {
		weft__push_pinned(worker, task);
		return;
	}
	if (!worker->overflow)
		spawn_queue_spill(worker);
	worker->overflow = true;
	weft__push_backlog(worker, task);
}

/* Queues a task that never ran, and for which the ring is too long. */
void weft__push_spawned(struct weft__worker *worker, struct weft__task *task)
{
	if (worker->overflow) {
		weft__push_backlog(worker, task);
		return;
	}
	worker->backlog = true; /* mutate: wake */
	weft__spawn_queue_push(worker, task);
	weft__pushed(worker); /* mutate: wake */
}

/* Queues a task behind all others of this worker, through the outbound ring. */
void weft__push_backlog(struct weft__worker *worker, struct weft__task *task)
{
	worker->backlog = true;
	if (!weft__runq_push(&worker->outbound, task))
		spill(worker, task);
	weft__pushed(worker);
}

/* Adds the newest first; the owner reverses the order. */
static void inbox_push(struct weft__worker *from, struct weft__worker *to,
		       struct weft__task *task)
{
	/* relaxed: compared and stored, never followed. */
	struct weft__task *head = weft__load(&to->inbox, relaxed);

	do {
		task->next = head;
		/* pairs: [inbox.push] */
	} while (!weft__cas(&to->inbox, &head, task,
			    release)); /* mutate: retry */
	weft__unpark(from, to); /* mutate: wake */
}

/* Queues a ready task that must run on one worker. */
void weft__push_pinned(struct weft__worker *worker, struct weft__task *task)
{
	struct weft__worker *to;

	if (worker && task->pin == worker->index + 1) {
		weft__chain_add(&worker->pinned, task);
		return;
	}
	to = worker ? worker->runtime->workers[task->pin - 1] : NULL;
	weft__assert(to != NULL, "a pinned task was made ready from nowhere");
	inbox_push(worker, to, task);
}

void weft__inbox_drain(struct weft__worker *worker)
{
	struct weft__task *task, *turned = NULL;

	/* relaxed: a look; decided by the swap. */
	if (!weft__load(&worker->inbox, relaxed))
		return;
	task = weft__swap(&worker->inbox, NULL, acquire); /* [inbox.push] */
	while (task) {
		struct weft__task *next = task->next;

		task->next = turned;
		turned = task;
		task = next;
	}
	while (turned) {
		task = turned;
		turned = task->next;
		weft__chain_add(&worker->pinned, task);
	}
}

void weft__enqueue(struct weft_runtime *runtime, struct weft__worker *here,
		   struct weft__task *task)
{
	struct weft__chain chain = { 0 };

	if (here && here->runtime == runtime) {
		weft__push(here, task);
		return;
	}
	if (task->pin) {
		inbox_push(NULL, runtime->workers[task->pin - 1], task);
		return;
	}
	weft__chain_add(&chain, task);
	wake_claimed(runtime, NULL,
		     weft__inject_push_claim(&runtime->inject, &chain,
					     &runtime->idle));
}

bool weft__wake_next(struct weft_runtime *runtime, struct weft__worker *here,
		     uint64_t id)
{
	struct weft__task *task = weft__task_at(runtime, id);

	if (!task || !weft__task_notify(task, id))
		return false;
	if (here && here->runtime == runtime)
		weft__push_next(here, task);
	else
		weft__enqueue(runtime, here, task);
	return true;
}

/*
 * Taking.
 */

/* Puts a chain behind the ring's tasks; the ring has the room. */
static void ring_add(struct weft__worker *worker, struct weft__chain *chain)
{
	struct weft__task *task;

	while ((task = weft__chain_take(chain)))
		if (!weft__runq_push(&worker->runq, task))
			weft__push_slow(worker, task);
	worker->notify = true;
}

/* How many injected tasks the ring takes: some of its room is left to tasks
 * that timers and completions make ready, but a few are taken in any case. */
static uint32_t injected_room(struct weft__worker *worker)
{
	uint32_t count = weft__runq_count(&worker->runq);

	return count + WEFT__SHARE_MIN < WEFT__HARVEST_MAX ?
		       WEFT__HARVEST_MAX - count :
		       WEFT__SHARE_MIN;
}

/* Takes a fair share of the injection queue.  Returns the first task, to run
 * now; the others are in the ring, where thieves see them. */
struct weft__task *weft__take_injected(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	uint32_t length = weft__inject_length(&runtime->inject);
	uint32_t room = injected_room(worker), share;
	struct weft__chain chain;
	struct weft__task *first;

	if (!length)
		return NULL;
	share = weft__inject_share(length, runtime->workers_count);
	weft__inject_take(&runtime->inject, share < room ? share : room,
			  &chain);
	if (!chain.count)
		return NULL;
	weft__count(worker, WEFT__N_INJECTED, chain.count);
	weft__count(worker, WEFT__N_INJECT_BATCHES, 1);
	first = weft__chain_take(&chain);
	if (chain.count)
		ring_add(worker, &chain);
	return first;
}

/* How many tasks of the outbound ring have their turn: a few while there is
 * older work in the injection queue, otherwise as many as fit into half of the
 * ring's room. */
static uint32_t outbound_share(struct weft__worker *worker)
{
	uint32_t used = worker->runq.max - weft__runq_room(&worker->runq);

	if (weft__inject_length(&worker->runtime->inject) ||
	    used + 2 * WEFT__SHARE_MIN > WEFT__RUNQ_SHORT)
		return WEFT__SHARE_MIN;
	return (WEFT__RUNQ_SHORT - used) / 2;
}

/* The turn of work that is not in the ring: the injected tasks, and some of
 * those in the outbound ring and in the spawn queue, from which the ring would
 * otherwise be refilled only when it is empty.  Returns the first to run. */
static struct weft__task *take_turn(struct weft__worker *worker)
{
	struct weft__task *first = weft__take_injected(worker), *task;
	uint32_t share = outbound_share(worker);

	for (uint32_t i = 0; worker->backlog && i < share; i++) {
		task = weft__runq_pop(&worker->outbound);
		if (!task)
			break;
		if (!first)
			first = task;
		else if (!weft__runq_push(&worker->runq, task))
			weft__push_backlog(worker, task);
	}
	if (!weft__spawn_queue_count(&worker->spawn_queue))
		return first;
	task = weft__spawn_queue_turn(worker, outbound_share(worker));
	if (!first)
		return task;
	if (task)
		weft__push(worker, task);
	return first;
}

static bool turn_is_late(struct weft__worker *worker, uint64_t now_ns)
{
	return now_ns - worker->tick.turn_ns >= WEFT__TURN_NS &&
	       !worker->limit.gives_way && !worker->runtime->turn_off;
}

/* After so many runs, or after the time that those were to take: runs may have
 * become longer since they were counted out.  A worker that gives way leaves
 * what it handed over.  If runs are as long as that, every other turn is the
 * local tasks'. */
static bool turn_is_due(struct weft__worker *worker, uint64_t now_ns)
{
	if (worker->tick.until_inject <= 0)
		return true;
	if (!turn_is_late(worker, now_ns))
		return false;
	if (!worker->tick.turn_took)
		return true;
	worker->tick.turn_took = false;
	return false;
}

struct weft__task *weft__turn_if_due(struct weft__worker *worker,
				     uint64_t now_ns)
{
	struct weft__task *first;

	if (!turn_is_due(worker, now_ns))
		return NULL;
	worker->tick.until_inject = (int32_t)worker->tick.inject_interval;
	worker->tick.turn_ns = now_ns;
	weft__inbox_drain(worker);
	first = take_turn(worker);
	worker->tick.turn_took = first != NULL;
	return first;
}

/* The ring is empty, except for tasks that a thief still copies out of it:
 * moves as many tasks of the outbound ring into it as fit. */
static void take_back(struct weft__worker *worker)
{
	uint32_t room = weft__runq_room(&worker->runq);
	struct weft__task *oldest = NULL;
	struct weft__claim claim;

	/* Tasks that are woken next are behind all of these: not that many
	 * tasks that never ran.  (Only without thieves is there that much
	 * room.) */
	if (room > WEFT__RUNQ_SHORT)
		oldest = weft__runq_peek(&worker->outbound);
	if (oldest && weft__task_never_ran(oldest))
		room = WEFT__RUNQ_SHORT;
	if (!room || !weft__runq_claim(&worker->outbound, 1, room, &claim))
		return;
	for (uint32_t i = 0; i < claim.count; i++)
		/* There is room: thieves only add to it. */
		(void)weft__runq_push(&worker->runq,
				      weft__runq_claimed(&worker->outbound,
							 &claim, i));
	weft__runq_release(&worker->outbound);
	worker->notify = true;
}

/* The ring is empty: takes tasks that overflowed earlier, in age; then tasks
 * that never ran. */
struct weft__task *weft__refill(struct weft__worker *worker)
{
	struct weft__task *task;

	if (weft__unlikely(worker->pinned.count))
		return weft__chain_take(&worker->pinned);
	if (weft__likely(!worker->backlog))
		return NULL;
	task = weft__take_injected(worker);
	if (task)
		return task;
	take_back(worker);
	task = weft__runq_pop(&worker->runq);
	if (!task) /* a thief copies some; the others are ours */
		task = weft__runq_pop(&worker->outbound);
	worker->overflow &= weft__runq_count(&worker->outbound) != 0;
	if (!task)
		task = weft__spawn_queue_take(worker);
	worker->backlog = weft__runq_count(&worker->outbound) ||
			  weft__spawn_queue_count(&worker->spawn_queue);
	return task;
}

/* Sets the fuse to the number of runs until the nearest thing to look at. */
void weft__fuse_set(struct weft__worker *worker)
{
	int32_t fuse = worker->tick.budget;

	if (worker->tick.until_inject < fuse)
		fuse = worker->tick.until_inject;
	if ((int32_t)worker->tick.clock_every < fuse)
		fuse = (int32_t)worker->tick.clock_every;
	if (fuse < 1)
		fuse = 1;
	worker->fuse = fuse;
	worker->fuse_set = fuse;
}

/* Notes the longest of `runs` runs since the last look at the clock.  The time
 * between two looks is kept short, so if it was long, one of the runs was: the
 * time of the others is known well enough. */
void weft__note_longest(struct weft__worker *worker, uint64_t now_ns,
			int32_t runs)
{
	uint64_t longest_ns = now_ns - worker->tick.clock_ns;
	uint64_t others_ns = worker->tick.average_ns * (uint64_t)(runs - 1);

	longest_ns = longest_ns > others_ns ? longest_ns - others_ns : 0;
	/* relaxed: one writer. */
	if (longest_ns >
	    weft__load(&worker->counts[WEFT__N_LONGEST_POLL_NS], relaxed))
		weft__store(&worker->counts[WEFT__N_LONGEST_POLL_NS],
			    longest_ns, relaxed);
}

/* The runs of the fuse are over: notes that, and the time. */
static void fuse_burnt(struct weft__worker *worker, uint64_t now_ns)
{
	worker->tick.budget -= worker->fuse_set;
	worker->tick.until_inject -= worker->fuse_set;
	weft__note_longest(worker, now_ns, worker->fuse_set);
	worker->tick.clock_ns = now_ns;
	/* relaxed: helpers compare it with a clock. */
	weft__store(&worker->seen_ns, now_ns, relaxed);
}

/* The last run of the fuse is over, and the next task is known.  True: that
 * task runs, after a look at the clock alone.  False: a look around is due. */
bool weft__fuse_renew(struct weft__worker *worker)
{
	uint64_t now_ns;

	if (worker->tick.budget <= worker->fuse_set ||
	    worker->tick.until_inject <= worker->fuse_set)
		return false;
	now_ns = worker->ops->now(worker->runtime);
	if (now_ns - worker->tick.began_ns >= WEFT__TICK_NS ||
	    turn_is_late(worker, now_ns))
		return false;
	fuse_burnt(worker, now_ns);
	weft__fuse_set(worker);
	worker->fuse++; /* it burns down before a run */
	return true;
}

/* The fuse has burnt down.  Returns a task from outside the ring that runs
 * before local work; or NULL, and perhaps the tick is over. */
struct weft__task *weft__look_around(struct weft__worker *worker)
{
	uint64_t now_ns = worker->ops->now(worker->runtime);
	struct weft__task *task;

	fuse_burnt(worker, now_ns);
	if (worker->tick.budget <= 0 ||
	    now_ns - worker->tick.began_ns >= WEFT__TICK_NS) {
		worker->tick_over = true;
		worker->fuse = worker->fuse_set = 1;
		return NULL;
	}
	task = weft__turn_if_due(worker, now_ns);
	weft__fuse_set(worker);
	return task;
}

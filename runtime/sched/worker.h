/* SPDX-License-Identifier: MIT */
/*
 * Worker - a thread that runs tasks.  This header is the hot path: what happens
 * between two tasks.
 *
 *	new and woken tasks --> [LIFO slot] --displaced--> [ring]
 *	                                                    | full
 *	                              [outbound ring] <-----'
 *	                                     | full: 128 as a batch
 *	                              (injection queue) --share--> ring
 *
 * One queue in age: while a worker has overflow outstanding, its new local work
 * goes to the outbound ring, behind the worker's tasks in the injection queue.
 * Its ring refills from there, and from the outbound ring when the injection
 * queue is empty.  So new work never overtakes old, whatever overflows.
 *
 * Tasks that never ran are kept apart: a task that starts a hundred thousand
 * others must not put the timers and completions of running tasks behind all of
 * them.  They fill half of the ring, and then a list of their own:
 * spawn_queue.h.
 *
 * Between two runs a worker counts down one fuse, which stands for all that is
 * looked at less often: the budget of 128 runs a tick, the interval of the
 * injection queue, the clock.
 */
#ifndef WEFT_RUNTIME_SCHED_WORKER_H
#define WEFT_RUNTIME_SCHED_WORKER_H

#include <weft/runtime.h>

#include "runtime/sched/dispatch.h"
#include "runtime/sched/driver.h"
#include "runtime/sched/handoff_slot.h"
#include "runtime/sched/inject.h"
#include "runtime/sched/runq.h"
#include "runtime/sched/spawn_queue.h"
#include "runtime/sched/task.h"
#include "runtime/stack/fiber.h"
#include "runtime/stack/stack.h"

enum {
	WEFT__TICK_BUDGET = 128, /* runs a tick */
	WEFT__OPS_BUDGET = 128,	 /* ready operations a run */
	WEFT__LIFO_MAX = 3,	 /* runs in a row out of the LIFO slot */
	WEFT__SPILL = 128,	 /* tasks moved at a time, at most */
	WEFT__SPAWN_RING_MAX = 128,	 /* tasks that never ran enter a ring up
				    to that length */
	WEFT__HARVEST_MAX = 192,
	WEFT__HARVEST_MIN = 16,
	WEFT__FREE_TASKS_MAX = 512,
	WEFT__FREE_TASKS_BATCH = 256,
	/* A limit of fewer tasks than that for each worker is small: then the
	 * tasks that workers would keep matter. */
	WEFT__TASKS_SMALL = 8192,
};

#define WEFT__TICK_NS 200000u	   /* a tick ends after that */
#define WEFT__TURN_NS 1000000u	   /* the injection queue has a turn after
				      that */
#define WEFT__WAKE_NS 50000u	   /* a push is reported to peers after that */
#define WEFT__LATE_NS 1000000u	   /* an owner not seen for that time is
				      helped */
#define WEFT__QUIET_NS 100000000u  /* the monitor retires after that */

/* How the task that was left is dealt with. */
enum weft__left {
	WEFT__LEFT_NOTHING,
	WEFT__LEFT_YIELD, /* queue it */
	WEFT__LEFT_PARK,  /* it waits */
	WEFT__LEFT_JOIN,  /* it waits for the task that runs now */
	WEFT__LEFT_DONE,  /* it has ended; its stack is freed */
};

/* The counters of weft_worker_stats, in its order.  One writer each. */
enum weft__count {
	WEFT__N_POLLS,
	WEFT__N_TICKS,
	WEFT__N_SPAWNED,
	WEFT__N_ENDED,
	WEFT__N_LIFO_HITS,
	WEFT__N_PARKS,
	WEFT__N_WAKES_SENT,
	WEFT__N_WAKES_WASTED,
	WEFT__N_STEALS_TRIED,
	WEFT__N_STEALS_WON,
	WEFT__N_STOLEN,
	WEFT__N_INJECTED,
	WEFT__N_INJECT_BATCHES,
	WEFT__N_OVERFLOWED,
	WEFT__N_OPS,
	WEFT__N_OPS_READY,
	WEFT__N_READY_YIELDS,
	WEFT__N_COMPLETIONS,
	WEFT__N_RESCUES,
	WEFT__N_HELPS,
	WEFT__N_TIMERS_FIRED,
	WEFT__N_LONGEST_POLL_NS,
	WEFT__N_GIVEN_WAY,
	WEFT__COUNTS,
};

_Static_assert(WEFT__COUNTS + 9 == sizeof(struct weft_worker_stats) / 8,
	       "the counters are those of the public struct");

enum weft__park_word {
	WEFT__PARK_EMPTY,
	WEFT__PARK_SLEEPS,
	WEFT__PARK_NOTIFIED,
};

/* The parts of a worker; all of them are the owner's. */

/* The limits of a tick, and what the tick has taken. */
struct weft__worker_tick {
	int32_t budget;	      /* runs left in this tick, but for the fuse */
	int32_t until_inject; /* runs until the injection queue is looked at */
	uint32_t inject_interval; /* what that is set to */
	uint32_t clock_every; /* runs between looks at the clock */
	uint64_t average_ns;  /* of a run, moving */
	uint64_t began_ns;    /* when the tick began to run tasks */
	uint64_t polls_before; /* runs before the tick */
	uint64_t ended_ns;    /* when the tick before, or the sleep, ended; 0:
				 neither */
	uint64_t clock_ns;    /* the last look at the clock */
	uint64_t turn_ns;     /* the last turn of the injection queue */
	uint64_t looked_ns;   /* the last look at another worker */
	int32_t budget_max;   /* WEFT__TICK_BUDGET, but in tests */
	bool runs_tasks;      /* it does not poll or sleep */
	bool ran;	      /* something in this tick */
	bool turn_took;	      /* the last turn gave a task */
};

/* Whether it searches, sleeps, or looks after the others. */
struct weft__worker_wake {
	bool searching;
	bool claimed; /* was woken to search, not only to be the monitor, and
			 has found nothing yet */
	bool parked;  /* announced */
	bool watches; /* as the monitor, or for one that is on its way; until
			 it has seen to it that another one does, even if it
			 was claimed, and so is none */
	bool woken;   /* by a sleep that has just ended */
};

/* The sleep of a worker whose thread waits in a foreign loop; see
 * runtime/loop.c. */
struct weft__worker_rest {
	bool wanted; /* a park does not wait: it begins a rest */
	bool rests;  /* it is asleep between two turns */
	uint64_t until_ns; /* when the descriptor is readable at the latest */
};

/* See worker_limit.h. */
struct weft__worker_limits {
	bool drained;	/* it had run all it had */
	bool gives_way;
	bool stays;	/* does not give way in its next tick */
	uint64_t looked_ns; /* the last look at these figures; then */
	uint64_t waited_ns; /* its thread had waited so long for processors */
	uint64_t polls;	    /* and it had run so many tasks */
	uint64_t completions;
	uint64_t taken; /* from the injection queue and from workers */
};

/* The caches for tasks that begin here. */
struct weft__worker_caches {
	struct weft__task *tasks; /* free records */
	uint32_t tasks_count;
	bool keep_no_tasks; /* immutable: the limit of tasks is small */
	struct weft__stack_cache stacks;
};

struct weft__worker {
	/* Owner only, touched at each switch. */
	struct weft__task *current;	/* NULL: the scheduler itself runs */
	struct weft__task *polled;	/* the future that runs; current is NULL
					   then */
	void *polled_from;		/* the frame that calls it */
	struct weft__task *handed; /* the future for which a task was left: the
				      scheduler runs it next */
	struct weft__task *left;	/* the task that was just left */
	struct weft__stack *left_stack; /* of a task that has ended */
	uint32_t left_how;		/* enum weft__left */
	int32_t fuse;	   /* runs until the next look around */
	int32_t fuse_set;  /* the value it was set to */
	int32_t ops_left;  /* ready operations left in this run */
	uint32_t lifo_run; /* runs in a row out of the LIFO slot */
	bool notify;	   /* pushed to the ring, not yet reported to peers */
	bool unfenced;	   /* pushed since the last full check */
	bool overflow;	   /* older work of this worker is in the injection
			      queue */
	bool backlog;	   /* work of this worker is there, in outbound, or in
			      spawn_queue */
	bool tick_over;	   /* the budget of the tick is spent */
	bool fenced; /* immutable: no heavy barriers; handoff_slot.h */
	void *sched_sp;	   /* the scheduler's own stack */
	struct weft__exceptions *exceptions; /* of its thread; NULL: it can
						have none */
	struct weft_runtime *runtime; /* immutable */
	const struct weft__driver_ops *ops;
	struct weft__chain pinned; /* ready tasks that stay here */
	uint32_t pinned_turn;
	uint32_t pushes;

	/* Owner only, touched each tick. */
	struct weft__worker_tick tick;
	uint64_t random;
	uint32_t next_help; /* the worker to look at next */
	bool alone; /* immutable: there is no other worker, and no helper */
	struct weft__worker_wake wake;
	struct weft__worker_rest rest;
	struct weft__worker_limits limit;
	struct weft__worker_caches caches;
	uint32_t index; /* immutable */
	struct weft__fiber_thread own; /* the stack of its thread */
	uint64_t visits; /* looks at other workers so far; see weft__visit() */

	/* The driver's, and the timers'. */
	void *shard;
	void *timer_shard;

	/* Shared. */
	struct weft__handoff_slot lifo WEFT__APART;
	/* A task that has switched to the task that it joins, and is not yet
	 * PARKED. */
	struct weft__handoff_slot joining;
	/* When it was last between two tasks; 0 while it parks.  Written by the
	 * owner. */
	weft__atomic(uint64_t) seen_ns WEFT__APART;
	weft__atomic(uint64_t) drained_ns; /* when it had run all it had */
	weft__atomic(uint32_t) thread; /* its id, while it is in its loop */
	weft__atomic(uint64_t) woken_ns;   /* when it was last claimed */
	weft__atomic(bool) serves; /* most runs are short, and due to
				      completions */
	weft__atomic(uint64_t) counts[WEFT__COUNTS];
	weft__atomic(uint32_t) park_word WEFT__APART; /* V44-V46 */
	weft__atomic(struct weft__task *) inbox; /* pinned tasks made ready by
						    others; newest first */
	struct weft__runq runq;
	struct weft__runq outbound;
	struct weft__spawn_queue spawn_queue;
};

/* The offset of a thread-local is a constant of the process.  glibc has room
 * for one even if dlopen() loads the library; others do not load it then. */
#ifdef __GLIBC__
#define WEFT__TLS_INITIAL __attribute__((tls_model("initial-exec")))
#endif

/* The worker that runs on this thread, or NULL.  A task may resume on another
 * thread, and compilers keep the address of a thread-local; so this is a
 * function that is never inlined, or an instruction that is never moved. */
#if defined(__x86_64__) && !defined(WEFT__MODEL)
/* In the file that defines weft__worker_local.  Compilers do not read the
 * instruction's text, and link-time optimisation drops what nothing refers to;
 * so the instruction refers to this constant. */
extern const char weft__worker_place __attribute__((visibility("hidden")));

static inline __attribute__((always_inline)) struct weft__worker *
weft__worker_self(void)
{
	struct weft__worker *self;

#ifdef WEFT__TLS_INITIAL
	__asm__ volatile("movq	weft__worker_local@gottpoff(%%rip), %0\n\t"
			 "movq	%%fs:(%0), %0"
			 : "=r"(self)
			 : "m"(weft__worker_place)
			 : "memory");
#else
	/* A descriptor: the call changes only this register and the flags.  In
	 * a program the linker makes a constant of both. */
	__asm__ volatile("leaq	weft__worker_local@tlsdesc(%%rip), %0\n\t"
			 "call	*weft__worker_local@tlscall(%0)\n\t"
			 "movq	%%fs:(%0), %0"
			 : "=a"(self)
			 : "m"(weft__worker_place)
			 : "memory", "cc");
#endif
	return self;
}
#else
struct weft__worker *weft__worker_self(void);
#endif
/* Makes `worker` the calling thread's; for threads, and for tests that step. */
void weft__worker_set(struct weft__worker *worker);

static inline void weft__count(struct weft__worker *worker,
			       enum weft__count which, uint64_t n)
{
#ifdef WEFT__MODEL
	/* Nothing depends on it.  A model counts the rescues. */
	if (which == WEFT__N_RESCUES)
		/* relaxed: as below. */
		weft__store(&worker->counts[which],
			    /* relaxed: as below. */
			    weft__load(&worker->counts[which], relaxed) + n,
			    relaxed);
#else
	/* relaxed: one writer, publishes nothing. */
	weft__store(&worker->counts[which],
		    weft__load(&worker->counts[which], relaxed) + n, relaxed);
#endif
}

/* Counts looks at other workers: tests bound how many a task costs.  Owner
 * only. */
static inline void weft__visit(struct weft__worker *worker, uint64_t n)
{
	worker->visits += n;
}

/* A random number, for choices between equals.  Owner only. */
static inline uint32_t weft__random(struct weft__worker *worker)
{
	/* xorshift64 (Marsaglia 2003). */
	uint64_t x = worker->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	worker->random = x;
	return (uint32_t)(x >> 32);
}

/* The limit of the ring's length.  A worker with work outside its ring has a
 * ring no longer than workers with peers have: the work outside has waited as
 * long, and a task woken now would be behind all of the ring. */
static inline uint32_t weft__ring_max(struct weft__worker *worker)
{
	return worker->backlog ? WEFT__RUNQ_SHORT : worker->runq.max;
}

/* Called after a push of a task that peers may take. */
static inline void weft__pushed(struct weft__worker *worker)
{
	worker->notify = true;
	if (weft__unlikely((++worker->pushes & 31) == 0))
		weft__notify_peers_late(worker);
}

/* Queues a ready task behind the tasks that this worker has.  Owner only. */
static inline void weft__push(struct weft__worker *worker,
			      struct weft__task *task)
{
	if (weft__unlikely(worker->overflow || task->pin) ||
	    weft__unlikely(worker->backlog &&
			   weft__runq_count(&worker->runq) >=
				   WEFT__RUNQ_SHORT) ||
	    weft__unlikely(!weft__runq_push(&worker->runq, task))) {
		weft__push_slow(worker, task);
		return;
	}
	weft__pushed(worker);
}

/* Makes a ready task the next to run here; the task in the LIFO slot before it
 * is queued.  Owner only. */
static inline void weft__push_next(struct weft__worker *worker,
				   struct weft__task *task)
{
	struct weft__task *old;

	if (weft__unlikely(task->pin)) {
		weft__push_slow(worker, task);
		return;
	}
	if (!weft__handoff_slot_has(&worker->lifo)) {
		weft__handoff_slot_put(&worker->lifo, task);
		return;
	}
	old = weft__handoff_slot_swap(&worker->lifo, task, worker->fenced);
	if (!old)
		return;
	if (weft__task_never_ran(old) &&
	    weft__runq_count(&worker->runq) >= WEFT__SPAWN_RING_MAX)
		weft__push_spawned(worker, old);
	else
		weft__push(worker, old);
}

/* Takes the task out of the LIFO slot.  Owner only. */
static inline struct weft__task *weft__lifo_take(struct weft__worker *worker)
{
	return weft__handoff_slot_take(&worker->lifo, worker->fenced);
}

/* Queues the LIFO slot's task behind all others.  Owner only. */
static inline void weft__lifo_queue(struct weft__worker *worker)
{
	struct weft__task *task = weft__lifo_take(worker);

	if (task)
		weft__push(worker, task);
}

/* How many completions or timers may be made ready at a time: as many as the
 * ring has room for, less some room for the tasks that they make ready in turn;
 * but a few in any case, so that a full ring does not hold them up. */
static inline uint32_t weft__harvest_room(struct weft__worker *worker)
{
	uint32_t count = weft__runq_count(&worker->runq);

	if (count < WEFT__HARVEST_MAX - WEFT__HARVEST_MIN)
		return WEFT__HARVEST_MAX - count;
	/* Called several times in a tick, which may be a short one. */
	return count + 3 * WEFT__HARVEST_MIN < weft__ring_max(worker) ?
		       WEFT__HARVEST_MIN :
		       WEFT__HARVEST_MIN / 4;
}

/* May a task that is known already run now, without a look around?  Then the
 * caller counts its run. */
static inline bool weft__fuse_lasts(struct weft__worker *worker)
{
	return weft__likely(worker->fuse > 1) || weft__fuse_renew(worker);
}

/* Is there nothing else to run here?  Owner only. */
static inline bool weft__alone(struct weft__worker *worker)
{
	return !weft__handoff_slot_has(&worker->lifo) &&
	       !weft__handoff_slot_has(&worker->joining) &&
	       !weft__runq_count(&worker->runq) && !worker->backlog &&
	       !worker->pinned.count;
}

/* Do other tasks wait, so that the LIFO slot must not run on and on?  Pinned
 * tasks have turns of their own. */
static inline bool weft__others_queued(struct weft__worker *worker)
{
	return weft__runq_count(&worker->runq) || worker->backlog;
}

/*
 * The next task, or NULL: nothing to run, or the tick is over.  Order: what is
 * due when the fuse has burnt down (the injection queue, in its turn), pinned
 * tasks in alternation, the LIFO slot, three times at most while others are
 * queued, the ring, older work that overflowed.
 */
static inline struct weft__task *weft__pick(struct weft__worker *worker)
{
	struct weft__task *task;

	if (weft__unlikely(worker->notify))
		weft__notify_peers(worker);
	if (weft__unlikely(--worker->fuse <= 0)) {
		task = weft__look_around(worker);
		if (task || worker->tick_over)
			return task;
	}
	if (weft__unlikely(worker->pinned.count) && (++worker->pinned_turn & 1))
		return weft__chain_take(&worker->pinned);
	task = weft__lifo_take(worker);
	if (task) {
		if (worker->lifo_run++ < WEFT__LIFO_MAX ||
		    !weft__others_queued(worker)) {
			weft__count(worker, WEFT__N_LIFO_HITS, 1);
			return task;
		}
		/* The cap is reached: behind the others. */
		weft__push(worker, task);
	}
	worker->lifo_run = 0;
	task = weft__runq_pop(&worker->runq);
	return weft__likely(task != NULL) ? task : weft__refill(worker);
}

/* Wakes the task of that id, which runs in its turn: for completions and
 * timers.  Returns whether it waited. */
static inline bool weft__wake(struct weft__worker *here,
			      struct weft__task *task, uint64_t id)
{
	if (!weft__task_notify(task, id))
		return false;
	/* It runs after those before it: time enough to fetch its stack. */
	weft__task_prefetch_stack(task);
	weft__push(here, task);
	return true;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Workers - the real scheduler as a model: each model thread is the thread of a
 * worker and calls weft__worker_step(), or is a thread from outside.
 *
 * Tasks have no stacks and do not suspend here (a switch to a task calls its
 * function).  The driver completes nothing, and its park waits for an eventfd,
 * for ever.  Time stands still unless the model moves it.
 */
#ifndef WEFT_TESTS_MODEL_WORKERS_H
#define WEFT_TESTS_MODEL_WORKERS_H

#define WEFT__RUNQ_SLOTS 4u
#define WEFT__RUNQ_SHORT 4u

#define KIT_HINTS
#include "tests/model/kit.h"

#include "runtime/stack/context.h"

struct weft__worker;
static struct weft__worker *switch_to_task(struct weft__worker *worker);
#define weft__context_prepare(top, control) ((void)(control), (void *)(top))
/* In the place of runtime/sched/context_switch.h. */
#define WEFT_RUNTIME_SCHED_CONTEXT_SWITCH_H
#define weft__context_switch(save, load, from, to, worker)                   \
	switch_to_task(worker)

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"
#include "tests/model/stacks.h"

#include "runtime/base/lock.c"
#include "runtime/sched/worker_limit.c"
#include "runtime/sched/spawn_queue.c"
#include "runtime/future/future.c"
#include "runtime/sched/idle.c"
#include "runtime/sched/inject.c"

/* The threads of a model are one real thread. */
#define weft__worker_self worker_self_of_a_thread
#define weft__worker_set worker_set_of_a_thread
#include "runtime/sched/dispatch.c"
#undef weft__worker_self
#undef weft__worker_set

#include "runtime/sched/switch.c"
#include "runtime/task/task_main.c"
#include "runtime/sched/sched.c"
#include "runtime/sched/monitor.c"
#include "runtime/sched/handoff_slot.c"
#ifdef WORKERS_STEAL
/* The model has one of its own, which calls this one. */
#define weft__steal steal_as_usual
#endif
#include "runtime/sched/steal.c"
#undef weft__steal

#if !defined(__x86_64__)
/* A task's last switch names it; no model makes that switch. */
struct weft__worker *weft__context_jump(void **save_sp, void *load_sp,
					struct weft__worker *pass)
{
	(void)save_sp, (void)load_sp;
	model_assert(false, "a model switched stacks");
	return pass;
}
#endif

enum { WORKERS_MAX = 3, TASKS = 4 };

static struct weft_runtime runtime;
static struct weft__worker pool[WORKERS_MAX];
static struct weft__worker *pool_pointers[WORKERS_MAX];
static struct model_event events[WORKERS_MAX];
static struct weft__task tasks[TASKS];
static struct model_event task_ran[TASKS];
static uint32_t task_runs[TASKS];
static struct weft__stack a_stack;
static uint64_t time_ns;
/* If not NULL, called before a worker sleeps. */
static void (*before_sleep)(struct weft__worker *worker);

static bool is_hint(const volatile void *p)
{
	size_t offset = (size_t)((uintptr_t)p - (uintptr_t)pool);

	if (offset < sizeof(pool))
		offset %= sizeof(pool[0]);
#ifdef WORKERS_PARK
	/* Nothing is shared in the models that have a park of their own. */
	if (p == &runtime.inject.length)
		return true;
#endif
#ifdef WORKERS_SPAWN_QUEUE
	if (offset >= offsetof(struct weft__worker, spawn_queue) &&
	    offset < sizeof(pool[0]))
		return false;
#endif
	/* Nothing overflows, so the outbound rings stay empty; only the models
	 * of the spawn queue have tasks in it. */
	return (offset >= offsetof(struct weft__worker, seen_ns) &&
		offset < offsetof(struct weft__worker, park_word)) ||
	       (offset >= offsetof(struct weft__worker, outbound) &&
		offset < sizeof(pool[0])) ||
	       p == &runtime.active_ns ||
	       (uintptr_t)p - (uintptr_t)&runtime.worker_limit <
		       sizeof(runtime.worker_limit);
}

/* The worker whose thread this is. */
struct weft__worker *weft__worker_self(void)
{
	unsigned self = model_self();

	return self < runtime.workers_count ? &pool[self] : NULL;
}

void weft__worker_set(struct weft__worker *worker)
{
	(void)worker;
}

/* Calls the task that was switched to, which returns. */
static struct weft__worker *switch_to_task(struct weft__worker *worker)
{
	struct weft__task *task = worker->current;
	size_t i = (size_t)(task - tasks);

	if (!task)
		return worker;
	model_assert(task_runs[i]++ == 0, "a task was run twice");
	(void)task->fn(task);
	worker->current = NULL;
	worker->left_how = WEFT__LEFT_NOTHING;
	model_post(&task_ran[i]);
	return worker;
}

/*
 * The driver.
 */

MODEL_UNSEEN static uint64_t driver_now(struct weft_runtime *of)
{
	(void)of;
	return time_ns;
}

static void driver_poll(struct weft__worker *worker, uint64_t now_ns)
{
	(void)worker, (void)now_ns;
}

static bool driver_pending(struct weft__worker *worker)
{
	(void)worker;
	return false;
}

static unsigned driver_help(struct weft__worker *worker,
			    struct weft__worker *late, uint64_t now_ns)
{
	(void)worker, (void)late, (void)now_ns;
	return 0;
}

static void driver_park_begin(struct weft__worker *worker)
{
	(void)worker;
}

#ifndef WORKERS_PARK
static void driver_park(struct weft__worker *worker, uint64_t wait_ns)
{
	model_assert(wait_ns > WEFT_NEVER / 2, "without a monitor, for ever");
	if (before_sleep)
		before_sleep(worker);
	model_wait(&events[worker->index]);
}
#else
static void driver_park(struct weft__worker *worker, uint64_t wait_ns);
#endif

static void driver_wake(struct weft__worker *from, struct weft__worker *to)
{
	(void)from;
	model_post(&events[to->index]);
}

/* No worker waits for a processor. */
static uint64_t driver_waited(struct weft__worker *worker)
{
	(void)worker;
	return 0;
}

static uint64_t driver_idled(struct weft_runtime *of)
{
	(void)of;
	return 0;
}

static void driver_watch(struct weft__worker *worker, bool watches)
{
	(void)worker, (void)watches;
}

static void driver_close(struct weft_runtime *of);

static const struct weft__driver_ops driver = {
	.now = driver_now,
	.poll = driver_poll,
	.pending = driver_pending,
	.help = driver_help,
	.park_begin = driver_park_begin,
	.park_abort = driver_park_begin,
	.park = driver_park,
	.wake = driver_wake,
	.watch = driver_watch,
	.waited = driver_waited,
	.cpu_idle = driver_idled,
	.close = driver_close,
};

#ifndef WORKERS_STOP
static void driver_close(struct weft_runtime *of)
{
	(void)of;
}

void weft__runtime_drained(struct weft_runtime *of)
{
	(void)of;
}

bool weft__stop_step(struct weft__worker *worker)
{
	(void)worker;
	return true;
}

uint64_t weft__stop_wait_ns(struct weft__worker *worker, uint64_t wait_ns)
{
	(void)worker;
	return wait_ns;
}
#endif

/*
 * Setting up.
 */

static int64_t do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void workers_setup(uint32_t count)
{
	memset(&runtime, 0, sizeof(runtime));
	memset(pool, 0, sizeof(pool));
	memset(tasks, 0, sizeof(tasks));
	memset(events, 0, sizeof(events));
	memset(task_ran, 0, sizeof(task_ran));
	memset(task_runs, 0, sizeof(task_runs));
	time_ns = 1000;
	before_sleep = NULL;
	runtime.ops = &driver;
	runtime.workers = pool_pointers;
	runtime.workers_count = count;
	runtime.monitor_off = true;
	weft__idle_init(&runtime.idle, count);
	weft__worker_limit_init(&runtime);
	for (uint32_t i = 0; i < count; i++) {
		pool_pointers[i] = &pool[i];
		pool[i].runtime = &runtime;
		pool[i].ops = &driver;
		pool[i].index = i;
		pool[i].next_help = i + 1;
		pool[i].runq.max = pool[i].outbound.max =
			WEFT__RUNQ_SLOTS;
		pool[i].random = 1;
		pool[i].tick.budget_max = 2; /* a run and a look */
		pool[i].tick.average_ns = 1000;
		pool[i].tick.inject_interval = 255;
		pool[i].tick.until_inject = 1000;
		pool[i].tick.clock_every = 1;
		pool[i].tick.looked_ns = time_ns;
	}
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i].index = i;
		tasks[i].stack = &a_stack;
		tasks[i].fn = do_nothing;
	}
	model_name(&runtime.idle.counts, "counts");
	model_name(&runtime.idle.bits, "bits");
	model_name(&runtime.inject.length, "length");
	model_name(&runtime.inject.lock, "lock");
	model_name(&runtime.stopping, "stopping");
	model_name(&runtime.idle.monitor, "monitor");
	model_name(&pool[0], "worker 0");
	model_name(&pool[1], "worker 1");
	model_name(&pool[2], "worker 2");
	model_name(events, "an eventfd");
	model_name(task_ran, "a task's end");
}

/* The worker announced that it parks, and no thread woke it since. */
static void start_parked(uint32_t i)
{
	pool[i].wake.parked = true;
	(void)weft__idle_park(&runtime.idle, i, false);
	weft__store(&pool[i].park_word, (uint32_t)WEFT__PARK_SLEEPS, relaxed);
}

/* The worker was claimed, and is awake: it searches. */
static void start_searching(uint32_t i)
{
	pool[i].wake.searching = true;
	(void)weft__add(&runtime.idle.counts, WEFT__IDLE_SEARCHING, relaxed);
}

/* A worker serves the others for ever. */
static void work(void *arg)
{
	struct weft__worker *worker = weft__worker_self();

	(void)arg;
	model_daemon();
	if (worker->wake.parked) {
		driver_park(worker, UINT64_MAX);
		park_end(worker);
	}
	for (;;)
		(void)weft__worker_step(worker);
}

static void wait_for(uint32_t i)
{
	(void)model_wait(&task_ran[i]);
}

static void submit(uint32_t i)
{
	weft__enqueue(&runtime, weft__worker_self(), &tasks[i]);
}

/* All workers sleep, are known to sleep, and have left nothing. */
static void workers_check(void *arg)
{
	uint64_t counts = weft__load(&runtime.idle.counts, relaxed);
	uint64_t all = ((uint64_t)1 << runtime.workers_count) - 1;

	(void)arg;
	model_assert(weft__idle_searching(counts) == 0, "nobody searches");
	model_assert(weft__idle_parked(counts) == runtime.workers_count,
		     "all are counted as parked");
	model_assert(weft__load(&runtime.idle.bits[0], relaxed) == all,
		     "all can be found");
	model_assert(weft__load(&runtime.inject.length, relaxed) == 0,
		     "the shared queue is empty");
	for (uint32_t i = 0; i < runtime.workers_count; i++)
		model_assert(!weft__runq_visible(&pool[i].runq) &&
				     weft__alone(&pool[i]),
			     "no worker has work");
}

/*
 * Stand-ins for the other functions of runtime/ that the scheduler calls and
 * the models do not need.
 */

struct weft__stack *weft__stack_fetch(struct weft__stacks *of,
				      uint8_t size_class)
{
	(void)of, (void)size_class;
	return &a_stack;
}

bool weft__stacks_trim(struct weft__stacks *of)
{
	(void)of;
	return false;
}

struct weft__task *weft__task_at(struct weft_runtime *of, uint64_t id)
{
	(void)of;
	return (uint32_t)id < TASKS ? &tasks[(uint32_t)id] : NULL;
}

void weft__task_give_back(struct weft_runtime *of, struct weft__task *task)
{
	(void)of, (void)task;
}

void weft__tasks_give_back(struct weft__worker *worker)
{
	(void)worker;
}

void weft__task_arg_free(struct weft_runtime *of, struct weft__task *task)
{
	(void)of, (void)task;
}

void weft__task_wake_threads(struct weft__task *task)
{
	(void)task;
}

void weft__future_wait(struct weft__worker *worker, struct weft__task *task);
void weft__future_disarm(struct weft__worker *worker, struct weft__task *task);
void weft__future_wait(struct weft__worker *worker, struct weft__task *task)
{
	(void)worker, (void)task;
}

void weft__future_disarm(struct weft__worker *worker, struct weft__task *task)
{
	(void)worker, (void)task;
}

void weft__scope_unlink(struct weft__task *task)
{
	(void)task;
}

void weft__scope_hear(struct weft__task *task, int64_t result)
{
	(void)task, (void)result;
}

void weft__task_locals_end(struct weft__task *task)
{
	(void)task;
}

void weft__scope_dismiss(struct weft__scope *s)
{
	(void)s;
}

void weft__scope_child_failed(struct weft__worker *worker,
			      struct weft_scope *scope, int64_t result)
{
	(void)worker, (void)scope, (void)result;
}

bool weft__scope_count_end(struct weft__worker *worker,
			   struct weft_scope *scope)
{
	(void)worker, (void)scope;
	return false;
}

void weft__within_inherit(struct weft_within *within, struct weft__task *task)
{
	(void)within, (void)task;
}

void weft_within_end(struct weft_within *within)
{
	(void)within;
}

#endif

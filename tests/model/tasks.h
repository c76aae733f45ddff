/* SPDX-License-Identifier: MIT */
/*
 * Tasks - the real protocols of tasks as a model: each model thread is a task
 * with a worker of its own, or is a thread from outside.
 *
 * The queues are not real.  A task that was left waits for an event, and the
 * thread that queues the task posts that event; a second post would be found.
 * Time stands still.
 */
#ifndef WEFT_TESTS_MODEL_TASKS_H
#define WEFT_TESTS_MODEL_TASKS_H

#define KIT_HINTS
#define KIT_FUTEX
#include "tests/model/kit.h"

#include <sys/mman.h>

#include "runtime/stack/context.h"
#include "runtime/sched/runq.h"

struct weft__task;
struct weft__worker;
static void task_ready(struct weft__task *task);
static struct weft__worker *task_left(struct weft__worker *worker);

enum { RECORDS = MODEL_THREADS + 1 };

#define weft__context_prepare(top, control) ((void)(control), (void *)(top))
/* In the place of runtime/sched/context_switch.h. */
#define WEFT_RUNTIME_SCHED_CONTEXT_SWITCH_H
#define weft__context_switch(save, load, from, to, worker) task_left(worker)
#define weft__runq_push(queue, task) (task_ready(task), true)
#define weft__runq_pop(queue) ((void)(queue), (struct weft__task *)NULL)

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"
#include "tests/model/stacks.h"

static struct weft__task records[RECORDS];

static inline void weft__futex_wait(weft__atomic(uint32_t) *word,
				    uint32_t value);
static inline void weft__futex_wake(weft__atomic(uint32_t) *word, int threads);

#include "runtime/base/lock.c"

/* The threads of a model are one real thread. */
#define weft__worker_self worker_self_of_a_thread
#define weft__worker_set worker_set_of_a_thread
#include "runtime/sched/worker_limit.c"
#include "runtime/sched/spawn_queue.c"
#include "runtime/sched/dispatch.c"
#include "runtime/sched/handoff_slot.c"
#undef weft__worker_self
#undef weft__worker_set

/* Memory stays: nothing is freed. */
#define weft__memory_free(from, memory, bytes) \
	((void)(from), (void)(memory), (void)(bytes))
#define weft__memory_apart_free weft__memory_free
#include "runtime/sched/switch.c"
#include "runtime/task/task_main.c"

/* Memory for records is there already, and that of a runtime stays. */
#define mmap(address, bytes, ...) ((void)(bytes), (void *)records)
#define munmap(address, bytes) ((void)(address))
#include "runtime/sched/future_room.c"
#include "runtime/future/await.c"
#include "runtime/future/future.c"
#include "runtime/task/cancel.c"
#include "runtime/task/go.c"
#include "runtime/task/join.c"
#include "runtime/task/scope_limit.c"
#include "runtime/task/scope.c"
#include "runtime/sched/task.c"
#include "runtime/task/within.c"

/* A task that is to run next here may run immediately elsewhere. */
static void push_here(struct weft__worker *worker, struct weft__task *task)
{
	model_assert(worker == weft__worker_self(),
		     "a task is queued by the worker that runs");
	task_ready(task);
}

#define weft__push(worker, task) push_here(worker, task)
#define weft__push_next(worker, task) push_here(worker, task)
#include "runtime/sync/await_grant.c"
#include "runtime/sched/waiter.c"
#undef weft__push
#undef weft__push_next

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
#undef weft__memory_apart_free
#undef weft__memory_free

static struct weft_runtime runtime;
static struct weft__worker pool[MODEL_THREADS];
static struct weft__worker *pool_pointers[MODEL_THREADS];
static struct weft__task *chunks[1] = { records };
static struct weft__stack stacks[RECORDS];
static struct model_event runs[RECORDS];
static bool foreign[MODEL_THREADS];
static unsigned worker_of[MODEL_THREADS];

/* In these models only its owner looks at a worker, except at the hand-off slot
 * of a joiner where the model is about that. */
static bool is_hint(const volatile void *p)
{
	size_t offset = (size_t)((uintptr_t)p - (uintptr_t)pool);

	if (p == &runtime.idle.counts)
		return true;
#ifdef TASKS_JOINING
	if (offset < sizeof(pool) &&
	    offset % sizeof(pool[0]) - offsetof(struct weft__worker, lifo) <
		    2 * sizeof(struct weft__handoff_slot))
		return false;
#endif
	return offset < sizeof(pool);
}

struct weft__worker *weft__worker_self(void)
{
	unsigned self = model_self();

	return self < MODEL_THREADS && !foreign[self] ? &pool[worker_of[self]] :
							NULL;
}

void weft__worker_set(struct weft__worker *worker)
{
	(void)worker;
}

/* The thread that runs the task uses its stack, or the link by which it was
 * queued if it has none, and sees what the thread saw that queued it. */
static void task_ready(struct weft__task *task)
{
	if (task->stack)
		task->sp = NULL;
	else
		task->next = NULL;
	model_post(&runs[task - records]);
}

/* The worker that the task goes on with. */
static struct weft__worker *task_moved(struct weft__worker *worker)
{
#ifdef TASKS_WAITS
	/* Each of the first three has two workers, and takes the other. */
	if (model_self() < 3) {
		worker_of[model_self()] ^= 4;
		return weft__worker_self();
	}
#endif
	return worker;
}

/* Goes to the other side of a switch, and back. */
static struct weft__worker *task_left(struct weft__worker *worker)
{
	struct weft__task *self = worker->left, *next = worker->current;

	self->sp = worker;
	weft__arrive(worker);
	if (next) {
		/* It runs here; the thread that resumes this task has another
		 * worker. */
		worker_of[next - records] = worker->index;
		worker_of[model_self()] = MODEL_THREADS - 1;
		task_ready(next);
		worker = weft__worker_self();
	}
	model_assert(model_wait(&runs[self - records]) == 1,
		     "a task was queued twice");
	/* relaxed: its own. */
	model_assert(!(weft__load(&self->state, relaxed) & WEFT__PARKED),
		     "a task runs that is parked");
	worker = task_moved(worker);
	worker->current = self;
	return worker;
}

/*
 * The futex, for locks, and for words that may be gone when their waiter is
 * woken, such as the half of a state word that holds the flags.  The kernel
 * compares and sleeps under a lock, which a waker takes too.
 */
static struct model_mutex futex_lock;
static struct model_event futex_event[MODEL_THREADS];
static weft__atomic(uint32_t) *futex_waits[MODEL_THREADS];

static bool is_state(const volatile void *p)
{
	return (uintptr_t)p - (uintptr_t)records < sizeof(records);
}

static bool may_be_gone(const volatile void *p)
{
#ifdef TASKS_WAITS
	(void)p;
	return true;
#else
	return is_state(p);
#endif
}

/* relaxed: as the kernel does, under its lock. */
static uint32_t futex_load(weft__atomic(uint32_t) *word)
{
	if (is_state(word))
		return (uint32_t)weft__load((uint64_t *)(void *)word, relaxed);
	return weft__load(word, relaxed);
}

MODEL_UNSEEN static void futex_set(unsigned i, weft__atomic(uint32_t) *word)
{
	futex_waits[i] = word;
}

MODEL_UNSEEN static bool futex_is(unsigned i, weft__atomic(uint32_t) *word)
{
	return futex_waits[i] == word;
}

static inline void weft__futex_wait(weft__atomic(uint32_t) *word,
				    uint32_t value)
{
	bool sleeps;

	if (!may_be_gone(word)) {
		model_park(word, value);
		return;
	}
	model_lock(&futex_lock);
	sleeps = futex_load(word) == value;
	if (sleeps)
		futex_set(model_self(), word);
	model_unlock(&futex_lock);
	if (sleeps)
		(void)model_wait(&futex_event[model_self()]);
}

static inline void weft__futex_wake(weft__atomic(uint32_t) *word, int threads)
{
	if (!may_be_gone(word)) {
		model_unpark(word, (unsigned)threads);
		return;
	}
	model_lock(&futex_lock);
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		if (futex_is(i, word)) {
			futex_set(i, NULL);
			model_post(&futex_event[i]);
		}
	model_unlock(&futex_lock);
}

/*
 * Setting up.
 */

#ifndef TASKS_CLOCK
static uint64_t driver_now(struct weft_runtime *of)
{
	(void)of;
	return 1000;
}
#else
static uint64_t driver_now(struct weft_runtime *of);
#endif

#ifndef TASKS_TIME
static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	(void)worker, (void)alarm, (void)deadline_ns;
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	(void)of, (void)alarm;
	return true;
}
#else
static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns);
static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm);
#endif

static void driver_close(struct weft_runtime *of)
{
	(void)of;
}

static void driver_watch(struct weft__worker *worker, bool watches)
{
	(void)worker, (void)watches;
}

static const struct weft__driver_ops driver = {
	.close = driver_close,
	.watch = driver_watch,
	.now = driver_now,
	.arm = driver_arm,
	.disarm = driver_disarm,
};

/* Worker i runs task i; both belong to thread i.  All are in the root scope. */
static void tasks_setup(unsigned count)
{
	memset(&runtime, 0, sizeof(runtime));
	memset(pool, 0, sizeof(pool));
	memset(records, 0, sizeof(records));
	memset(stacks, 0, sizeof(stacks));
	memset(runs, 0, sizeof(runs));
	memset(foreign, 0, sizeof(foreign));
	memset(&futex_lock, 0, sizeof(futex_lock));
	memset(futex_event, 0, sizeof(futex_event));
	memset(futex_waits, 0, sizeof(futex_waits));
	runtime.ops = &driver;
	runtime.workers = pool_pointers;
	runtime.workers_count = MODEL_THREADS;
	runtime.idle.workers = MODEL_THREADS;
	chunks[0] = records;
	runtime.tasks.chunks = chunks;
	runtime.tasks.chunks_max = 1;
	runtime.tasks.used = RECORDS;
	runtime.tasks.max = RECORDS;
	weft__scope_init(&runtime.root, WEFT__SCOPE_SUPERVISOR, &runtime, NULL);
	for (unsigned i = 0; i < MODEL_THREADS; i++) {
		pool_pointers[i] = &pool[i];
		worker_of[i] = i;
		pool[i].runtime = &runtime;
		pool[i].ops = &driver;
		pool[i].index = i;
		pool[i].fuse = pool[i].fuse_set = 1000000;
		pool[i].tick.clock_every = 1000;
	}
	for (unsigned i = 0; i < RECORDS; i++) {
		records[i].index = i;
		records[i].state = WEFT__GENERATION | WEFT__FREE;
		records[i].stack = &stacks[i];
		records[i].scope = &runtime.root;
		records[i].deadline_ns = WEFT_NEVER;
		if (i < count) {
			records[i].state = WEFT__GENERATION;
			pool[i].current = &records[i];
			weft__scope(&runtime.root)->pending++;
		}
	}
	model_name(&records[0], "task 0");
	model_name(&records[1], "task 1");
	model_name(&records[2], "task 2");
	model_name(&runtime, "runtime");
	model_name(runs, "a run");
}

static struct weft__task *task_self(void)
{
	return weft__worker_self()->current;
}

static struct weft_task handle_of(unsigned i)
{
	return (struct weft_task){ WEFT__GENERATION | i };
}

/* The task of this thread is started by another, in its scope. */
static void start_in(struct weft_scope *scope, unsigned i, bool handle)
{
	struct weft_task ignored;

	weft__scope(&runtime.root)->pending--;
	records[i].scope = scope;
	weft__scope(scope)->started++;
	if (handle) {
		records[i].flags |= WEFT__TASK_HANDLE;
		go_handle(weft__scope(scope), &records[i], &ignored);
	}
}

/* Task `owner` has a scope open. */
static void open_scope(struct weft_scope *scope, unsigned owner,
		       enum weft__scope_kind kind)
{
	if (!(records[owner].flags & WEFT__TASK_LINKED))
		weft__scope_link(&records[owner]);
	weft__scope_init(scope, kind, &runtime, &records[owner]);
	records[owner].scopes = scope;
}

/* The task of this thread returns.  A task that it resumes runs immediately. */
static void end_with(int64_t result)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *next;

	task_returned(worker->current, result);
	worker = weft__worker_self();
	next = task_end(worker, worker->current, result);
	if (next)
		task_ready(next);
}

static void wait_for_news(void)
{
	(void)weft__suspend(weft__worker_self(), WEFT__REASON_UNREPORTED);
}

static void wake(unsigned i)
{
	(void)weft__wake(weft__worker_self(), &records[i], handle_of(i).id);
}

/* No task is queued that did not run. */
static void tasks_check(void)
{
	for (unsigned i = 0; i < RECORDS; i++)
		model_assert(runs[i].count == 0,
			     "a task was queued for nothing");
}

/* The record had one life, which is over. */
static void check_freed_once(unsigned i)
{
	model_assert(records[i].state == (2 * WEFT__GENERATION | WEFT__FREE),
		     "a record was freed once");
}

/*
 * Stand-ins for the other functions of runtime/ that tasks call and the models
 * do not need.
 */

struct weft__stack *weft__stack_fetch(struct weft__stacks *of,
				      uint8_t size_class)
{
	(void)of, (void)size_class;
	return &stacks[weft__worker_self()->index];
}

uint8_t weft__stack_class(size_t bytes)
{
	return bytes ? WEFT__STACK_CLASS_FIRST : 0;
}

void weft__inject_push(struct weft__inject *inject, struct weft__chain *chain)
{
	struct weft__task *task;

	(void)inject;
	while ((task = weft__chain_take(chain)))
		task_ready(task);
#ifdef TASKS_PUSHED
	TASKS_PUSHED();
#endif
}

int weft__inject_push_claim(struct weft__inject *inject,
			    struct weft__chain *chain, struct weft__idle *idle)
{
	weft__inject_push(inject, chain);
	return weft__idle_claim(idle);
}

void weft__inject_take(struct weft__inject *inject, uint32_t max,
		       struct weft__chain *ret_chain)
{
	(void)inject, (void)max;
	*ret_chain = (struct weft__chain){ 0 };
}

#ifndef TASKS_JOINING
int weft__idle_claim(struct weft__idle *idle)
{
	(void)idle;
	return -1;
}

int weft__idle_claim_lowest(struct weft__idle *idle)
{
	return weft__idle_claim(idle);
}

void weft__monitor_resign(struct weft_runtime *of, uint32_t index)
{
	(void)of, (void)index;
}
#endif

void weft__task_locals_end(struct weft__task *task)
{
	(void)task;
}

#ifndef TASKS_DRAIN
void weft__runtime_drained(struct weft_runtime *of)
{
	(void)of;
}

void weft__runtime_ends(struct weft_runtime *of, bool for_good)
{
	(void)of, (void)for_good;
}

void weft__runtime_goes_on(struct weft_runtime *of)
{
	(void)of;
}
#endif

/* No runtime is inside a foreign loop. */
uint64_t weft__thread_number(void)
{
	return 0;
}

const struct weft__driver_ops *weft__driver_default(void)
{
	return &driver;
}

#endif

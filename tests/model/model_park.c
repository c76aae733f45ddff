/* SPDX-License-Identifier: MIT */
/*
 * Model of parking against the end of a runtime (runtime/sched/sched.c,
 * runtime/runtime.c).  A worker that is about to park, or parks, leaves its
 * loop when the runtime stops.  The driver is closed when all workers have
 * left, and no thread ends before that.
 */
#define WORKERS_STOP
#include <pthread.h>
#include <stdio.h>

#include "tests/model/workers.h"

/* Threads end when the model's threads end.  Nothing is printed; the C library,
 * with checked calls on, may have a macro of that name. */
#undef fprintf
#define pthread_join(thread, ret) ((void)(thread))
#define pthread_detach(thread) ((void)(thread))
#define fprintf(stream, ...) ((void)0)
#include "runtime/runtime.c"
#include "runtime/runtime_new.c"
#include "runtime/sched/runtime_ref.h"
#undef pthread_join
#undef pthread_detach
#undef fprintf

/* By worker: whether it has left the loop, for the close to see. */
static uint32_t worked[WORKERS_MAX];
static uint32_t is_closed;

static void setup_n(uint32_t workers)
{
	workers_setup(workers);
	runtime.stop_by_ns = WEFT_NEVER;
	memset(worked, 0, sizeof(worked));
	is_closed = 0;
	model_name(&runtime.left, "left");
	model_name(&runtime.closed, "closed");
	model_name(&pool[0].park_word, "park_word 0");
	model_name(&pool[1].park_word, "park_word 1");
}

static void setup_1(void *arg)
{
	(void)arg;
	setup_n(1);
}

static void setup_2(void *arg)
{
	(void)arg;
	setup_n(2);
}

static void driver_close(struct weft_runtime *of)
{
	for (uint32_t i = 0; i < of->workers_count; i++)
		model_assert(worked[i] == 1, "all workers have left");
	is_closed = 1;
}

/* Called as the thread leaves the loop. */
void weft__overflow_thread_fini(void *altstack)
{
	(void)altstack;
	worked[model_self()] = 1;
}

static void work_and_end(void *arg)
{
	(void)arg;
	(void)worker_thread(weft__worker_self());
	model_assert(is_closed, "no thread ends before the driver is closed");
}

THREAD(stop_and_close, stop_now(&runtime);
       close_and_join(&runtime, runtime.workers_count, WEFT_NEVER);)

MODEL(one_worker_stops, setup_1, NULL, OPTIONS(), work_and_end, stop_and_close)
MODEL(two_workers_stop, setup_2, NULL, OPTIONS(.preemptions = 2, .weak = 1),
      work_and_end, work_and_end, stop_and_close)

/* Unparks without a reason, at any time, take no token from the stop. */
THREAD(unpark_0, weft__unpark(NULL, &pool[0]); weft__unpark(NULL, &pool[0]);)
MODEL(stop_meets_unparks, setup_1, NULL, OPTIONS(.preemptions = 2, .weak = 1),
      work_and_end, stop_and_close, unpark_0)

/* Another thread's call made the last task ready, which has ended since; the
 * call has not woken a worker yet. */
static void setup_visited(void *arg)
{
	setup_1(arg);
	runtime.refs = 1;
	model_name(&runtime.refs, "refs");
}

THREAD(visit_and_wake, weft__unpark(NULL, &pool[0]);
       model_assert(!is_closed, "the driver is not closed under a call");
       weft__runtime_unref(&runtime);)
MODEL(stop_meets_visit, setup_visited, NULL,
      OPTIONS(.preemptions = 2, .weak = 1), work_and_end, stop_and_close,
      visit_and_wake)

/* The root scope becomes empty while draining, in a task of worker 1. */
static int64_t drained(void *arg)
{
	(void)arg;
	weft__runtime_drained(&runtime);
	return 0;
}

static void setup_drained(void *arg)
{
	setup_2(arg);
	tasks[0].fn = drained;
	weft__runq_push(&pool[1].runq, &tasks[0]);
	runtime.stopping = WEFT__STOP_DRAINS;
}

THREAD(close_only, close_and_join(&runtime, runtime.workers_count, WEFT_NEVER);)
MODEL(drained_by_a_worker, setup_drained, NULL,
      OPTIONS(.preemptions = 2, .weak = 1), work_and_end, work_and_end,
      close_only)

/* The time to stop is up, and worker 1 computes for ever: the caller that stops
 * the runtime does not wait for it. */
static void setup_abandoned(void *arg)
{
	static pthread_t threads[2];

	setup_2(arg);
	runtime.tasks.used = 1;
	runtime.stopping = WEFT__STOP_DRAINS;
	runtime.stop_by_ns = 0;
	runtime.threads = threads;
	runtime.threads_count = 2;
}

static void compute_for_ever(void *arg)
{
	(void)arg;
	model_daemon();
	for (;;)
		wait_for(0);
}

static void leave_for_ever(void *arg)
{
	model_daemon();
	work_and_end(arg);
}

THREAD(stop_in_time, close_and_join(&runtime, 2, WEFT_NEVER);
       model_assert(runtime_end(&runtime, 0) == -ETIMEDOUT,
		    "tasks were left behind");)

MODEL(abandoned_by_worker_0, setup_abandoned, NULL, OPTIONS(),
      leave_for_ever, compute_for_ever, stop_in_time)

/*
 * Stand-ins for the rest of what runtime/runtime.c calls.
 */

int weft__tasks_init(struct weft_runtime *of, unsigned tasks_max)
{
	(void)of, (void)tasks_max;
	return 0;
}

void weft__tasks_fini(struct weft_runtime *of)
{
	(void)of;
}

void weft__overflow_report_fini(void)
{
}

void weft__overflow_report_init(weft__overflow_name_fn *name)
{
	(void)name;
}

int weft__stacks_init(struct weft__stacks *of, uint8_t size_class)
{
	(void)of, (void)size_class;
	return 0;
}

void weft__stacks_fini(struct weft__stacks *of)
{
	(void)of;
}

void weft__blocking_end(struct weft_runtime *of)
{
	(void)of;
}

int weft__watchdog_start(struct weft_runtime *of, const struct weft_opts *opts)
{
	(void)of, (void)opts;
	return 0;
}

void weft__watchdog_stop(struct weft_runtime *of, uint64_t by_ns)
{
	(void)of, (void)by_ns;
}

void weft__blocking_name_survivors(struct weft_runtime *of)
{
	(void)of;
}

void weft__waits_give_up(struct weft_runtime *of)
{
	(void)of;
}

uint8_t weft__stack_class(size_t bytes)
{
	return bytes ? WEFT__STACK_CLASS_FIRST : 0;
}

void weft__scope_init(struct weft_scope *scope, enum weft__scope_kind kind,
		      struct weft_runtime *of, struct weft__task *owner)
{
	(void)scope, (void)kind, (void)of, (void)owner;
}

void weft_scope_cancel(struct weft_scope *scope)
{
	(void)scope;
}

void *weft__overflow_thread_init(void)
{
	return NULL;
}

void weft__fiber_thread_init(struct weft__fiber_thread *thread)
{
	(void)thread;
}

int weft__loop_begin(struct weft_runtime *of)
{
	(void)of;
	return 0;
}

int weft__loop_end(struct weft_runtime *of)
{
	(void)of;
	return 0;
}

const struct weft__driver_ops *weft__driver_default(void)
{
	return &driver;
}

int weft__root_go(struct weft_runtime *of, struct weft__worker *here,
		  weft_fn fn, const void *arg, size_t arg_bytes,
		  const struct weft_task_opts *opts, bool raw_arg)
{
	(void)of, (void)here, (void)fn, (void)arg, (void)arg_bytes;
	(void)opts, (void)raw_arg;
	return 0;
}

int main(void)
{
	const TTest *const tests[] = {
		one_worker_stops,   two_workers_stop,    stop_meets_unparks,
		stop_meets_visit,   drained_by_a_worker, abandoned_by_worker_0,
		NULL,
	};

	return kit_main("park", tests);
}

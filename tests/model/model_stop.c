/* SPDX-License-Identifier: MIT */
/*
 * Model of the end of a runtime against threads that submit to it
 * (runtime/runtime.c, runtime/task/join.c, runtime/task/scope.c).  The workers
 * leave their loops once nothing is left, and not before every submitted task
 * has ended.  Then the runtime is freed.
 */
#define TASKS_DRAIN
#define TASKS_PUSHED memory_look
static void memory_look(void);
#include "tests/model/ends.h"

static struct weft_task_opts submit_opts = WEFT_TASK_OPTS_INIT;

/* Memory that tasks used, and that is freed with the runtime.  The last word is
 * the one that a submitting call still reads when others may run its task. */
static uint32_t shared[3];

static void memory_look(void)
{
	model_data_read(&shared[2]);
}

/* Task 0 runs; the runtime itself counts as one, as after weft_start().  Worker
 * 0 runs on thread 0 until it stops. */
static void setup(void *arg)
{
	static pthread_t threads[1];

	(void)arg;
	tasks_setup(1);
	weft__scope(&runtime.root)->pending++;
	runtime.tasks.free = &records[3];
	runtime.tasks.free_count = 1;
	runtime.threads = threads;
	runtime.workers_count = 1;
	runtime.threads_count = 1;
	memset(shared, 0, sizeof(shared));
	model_name(&runtime.stopping, "stopping");
	model_name(&weft__scope(&runtime.root)->pending, "pending");
	model_name(&runtime.left, "left");
	model_name(&runtime.closed, "closed");
	model_name(shared, "the runtime's memory");
}

static void check_end(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(weft__scope(&runtime.root)->pending == 0,
		     "all were counted");
	model_assert(runtime.stopping == WEFT__STOP_NOW, "the runtime stops");
}

static void end_before_stop(unsigned i)
{
	/* relaxed: the task itself keeps it from changing. */
	model_assert(weft__load(&runtime.stopping, relaxed) != WEFT__STOP_NOW,
		     "a runtime waits for its tasks");
	shared[i]++;
	end_with(0);
}

/* The time to stop is far off, as soon as there is one. */
static void look_at_time(struct weft__worker *worker)
{
	model_assert(weft__stop_wait_ns(worker, WEFT_NEVER) > WEFT_NEVER / 2,
		     "the time to stop is seen");
}

/* A step of worker 0, without its tasks. */
bool weft__worker_step(struct weft__worker *worker)
{
	look_at_time(worker);
	/* As in runtime/sched/sched.c. */
	if (weft__load(&runtime.stopping, acquire) != WEFT__STOP_NOT &&
	    !weft__stop_step(worker))
		return false;
	weft__spin_hint();
	return true;
}

/* A task that runs on worker 0, which then goes on until the end. */
static void run_and_leave(void *arg)
{
	struct weft__worker *worker = weft__worker_self();

	end_before_stop(0);
	worker->current = NULL;
	(void)worker_thread(worker);
	(void)arg;
}

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void submit(void *arg)
{
	int error;

	(void)arg;
	foreign[model_self()] = true;
	error = weft_submit(&runtime, nothing, NULL, 0, &submit_opts);
	model_assert(error == 0 || error == -ESHUTDOWN,
		     "it is accepted, or the runtime ends");
}

/* The worker that runs the submitted task. */
static void run_submitted(void *arg)
{
	(void)arg;
	model_daemon();
	(void)model_wait(&runs[3]);
	records[3].stack = &stacks[3];
	weft__worker_self()->current = &records[3];
	end_before_stop(1);
}

static void stop(void *arg)
{
	(void)arg;
	foreign[model_self()] = true;
	model_assert(weft_stop(&runtime) == 0, "a runtime can be stopped");
	model_free(shared, sizeof(shared));
}

/* The rest of a thread's call that began before the stop. */
static void setup_visited(void *arg)
{
	setup(arg);
	runtime.refs = 1;
	model_name(&runtime.refs, "refs");
}

static void visit(void *arg)
{
	(void)arg;
	foreign[model_self()] = true;
	shared[1]++;
	weft__runtime_unref(&runtime);
}

MODEL(stop_meets_visit, setup_visited, check_end, OPTIONS(.preemptions = 2),
      run_and_leave, stop, visit)
MODEL(stop_meets_end, setup, check_end, OPTIONS(.preemptions = 2),
      run_and_leave, stop)
MODEL(stop_meets_submit, setup, check_end, OPTIONS(.preemptions = 2),
      run_and_leave, submit, stop, run_submitted)

/* The first task is cancelled while its cancelled scope ends, and then returns.
 * The cancellation is for good: its time is the time to stop, and neither the
 * scope's end nor the return puts it off. */
static void setup_announced(void *arg)
{
	setup(arg);
	runtime.shutdown_ns = 1000;
	runtime.stop_by_ns = 0;
	runtime.ends_for_good = false;
	runtime.stop_lock = (struct weft__lock){ 0 };
	model_name(&runtime.stop_by_ns, "stop_by_ns");
}

static void end_scope_and_return(void *arg)
{
	(void)arg;
	foreign[model_self()] = true;
	weft__runtime_ends(&runtime, false);
	weft__runtime_goes_on(&runtime);
	drain(&runtime, WEFT_NEVER);
}

static void cancel_first_task(void *arg)
{
	uint32_t stopping;

	(void)arg;
	foreign[model_self()] = true;
	weft__runtime_ends(&runtime, true);
	stopping = weft__load(&runtime.stopping, acquire);
	model_assert(stopping != WEFT__STOP_NOT, "the end has begun");
	shared[0] = stopping;
}

static void check_announced(void *arg)
{
	(void)arg;
	model_assert(runtime.stopping == WEFT__STOP_DRAINS,
		     "the runtime drains");
	model_assert(shared[0] == WEFT__STOP_DRAINS ||
			     runtime.stop_by_ns < WEFT_NEVER,
		     "the time to stop was not put off");
}

MODEL(end_is_announced_twice, setup_announced, check_announced,
      OPTIONS(.preemptions = 2), end_scope_and_return, cancel_first_task)

int main(void)
{
	const TTest *const tests[] = { stop_meets_end, stop_meets_submit,
				       stop_meets_visit, end_is_announced_twice,
				       NULL };

	return kit_main("stop", tests);
}

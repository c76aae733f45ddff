/* SPDX-License-Identifier: MIT */
/*
 * Runtime - starting and ending one.
 *
 *	main is cancelled, or its outermost scope
 *	  --> ENDS: the time runs
 *	main returns
 *	  --> DRAINS: submitted tasks are cancelled and waited for
 *	the root scope is empty, or the time is up
 *	  --> NOW: workers leave their loops
 *	all have left, and all references are gone
 *	  --> the driver is closed
 *	  --> threads end
 *
 * ENDS exists in weft_run() alone.  It is only an intention: tasks may still be
 * submitted, and if only the scope was cancelled, the scope's end leads back.
 * `stop_lock` orders the steps to and from ENDS, with the time that belongs to
 * each.  The step to NOW needs no lock, and is the last.
 *
 * Tasks that are left when the time is up are abandoned.  Whatever they may
 * still touch stays: their stacks and scopes, the runtime, its rings, and the
 * threads.
 *
 * No thread ends before the driver is closed: when a thread exits, the kernel
 * cancels everything that it has submitted, on any ring.
 *
 * Orderings
 *   [runtime.stop]  `stopping` is stored before workers are unparked.  A worker
 *       that runs acquires it once a tick; one that parks learns of it through
 *       its park word.  The thread or task that ends a runtime stores
 *       `stopping`, then counts itself down in the root scope, release; a
 *       submitter counts itself first, acquire.  So a submitter that is counted
 *       later sees `stopping`, and one that was counted before is waited for.
 *       Modelled in tests/model/model_stop.c and model_park.c.
 *   [runtime.left]  `left` add release -> load acquire of the thread that
 *       closes the driver: all that the worker did.
 *   [runtime.ref]  `refs` sub release -> or and load acquire of the thread that
 *       closes the driver, then frees the runtime: calls of other threads no
 *       longer use either.
 *   [runtime.closed]  `closed` store release -> load acquire of the threads:
 *       the driver is closed.
 */
#include "runtime/sched/runtime.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/loop.h>

#include "runtime/base/futex.h"
#include "runtime/base/memory.h"
#include "runtime/base/nsec.h"
#include "runtime/blocking/blocking.h"
#include "runtime/dump/watchdog.h"
#include "runtime/loop.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/upcalls.h"
#include "runtime/sched/wait.h"
#include "runtime/sched/worker_limit.h"
#include "runtime/stack/overflow.h"
#include "runtime/task/go.h"
#include "runtime/task/join.h"
#include "runtime/task/scope.h"

/* ---- Stopping ------------------------------------------------------------ */

static void wake_all(struct weft_runtime *runtime)
{
	struct weft__worker *here = weft__worker_self();

	if (here && here->runtime != runtime)
		here = NULL;
	for (unsigned i = 0; i < runtime->workers_count; i++)
		if (runtime->workers[i] != here)
			/* mutate: wake */
			weft__unpark(here, runtime->workers[i]);
}

static void stop_now(struct weft_runtime *runtime)
{
	/* relaxed: a worker that leaves its loop for it reads nothing else. */
	weft__store(&runtime->stopping, (uint32_t)WEFT__STOP_NOW, relaxed);
	wake_all(runtime);
}

void weft__runtime_drained(struct weft_runtime *runtime)
{
	uint32_t draining = WEFT__STOP_DRAINS;

	/* pairs: [runtime.stop] */
	if (weft__cas(&runtime->stopping, &draining, (uint32_t)WEFT__STOP_NOW,
		      release))
		wake_all(runtime);
}

/* The time until which tasks are waited for. */
static uint64_t drain_by_ns(struct weft_runtime *runtime)
{
	uint64_t now_ns = runtime->ops->now(runtime);

	return runtime->shutdown_ns ?
		       weft__nsec_after(now_ns, runtime->shutdown_ns) :
		       WEFT_NEVER;
}

/* Worker 0 keeps the time. */
static void wake_timekeeper(struct weft_runtime *runtime)
{
	if (weft__worker_self() != runtime->workers[0])
		weft__unpark(NULL, runtime->workers[0]);
}

/* From `from` to a later stage, by by_ns; the caller holds stop_lock.  False:
 * another one was there. */
static bool stop_advance(struct weft_runtime *runtime, uint32_t from,
			 enum weft__stop to, uint64_t by_ns)
{
	/* relaxed: under the lock; the step to NOW makes the CAS fail. */
	if (weft__load(&runtime->stopping, relaxed) != from)
		return false;
	/* relaxed: published by `stopping`. */
	weft__store(&runtime->stop_by_ns, by_ns, relaxed);
	/* pairs: [runtime.stop] */
	return weft__cas(&runtime->stopping, &from, (uint32_t)to, release);
}

void weft__runtime_ends(struct weft_runtime *runtime, bool for_good)
{
	uint64_t by_ns = drain_by_ns(runtime);
	bool ends;

	if (by_ns == WEFT_NEVER)
		return;
	weft__lock_take(&runtime->stop_lock);
	runtime->ends_for_good |= for_good;
	ends = stop_advance(runtime, WEFT__STOP_NOT, WEFT__STOP_ENDS, by_ns);
	weft__lock_drop(&runtime->stop_lock);
	if (ends)
		wake_timekeeper(runtime);
}

void weft__runtime_goes_on(struct weft_runtime *runtime)
{
	uint32_t ends = WEFT__STOP_ENDS;

	weft__lock_take(&runtime->stop_lock);
	if (!runtime->ends_for_good)
		/* relaxed: publishes nothing. */
		(void)weft__cas(&runtime->stopping, &ends,
				(uint32_t)WEFT__STOP_NOT, relaxed);
	weft__lock_drop(&runtime->stop_lock);
}

/* From here on no submission succeeds, and running tasks are cancelled.  Worker
 * 0 stops the runtime at by_ns, or earlier if the end has begun before. */
static void drain(struct weft_runtime *runtime, uint64_t by_ns)
{
	uint64_t ends_by_ns;

	weft__lock_take(&runtime->stop_lock);
	/* relaxed: written under the lock. */
	ends_by_ns = weft__load(&runtime->stop_by_ns, relaxed);
	if (!stop_advance(runtime, WEFT__STOP_NOT, WEFT__STOP_DRAINS, by_ns))
		(void)stop_advance(runtime, WEFT__STOP_ENDS, WEFT__STOP_DRAINS,
				   ends_by_ns < by_ns ? ends_by_ns : by_ns);
	weft__lock_drop(&runtime->stop_lock);
	weft_scope_cancel(&runtime->root);
	wake_timekeeper(runtime);
}

unsigned weft__runtime_name_survivors(struct weft_runtime *runtime)
{
	/* relaxed: a look. */
	uint32_t used = weft__load(&runtime->tasks.used, relaxed);
	unsigned count = 0;

	for (uint32_t i = 0; i < used; i++) {
		struct weft__task *task = weft__task_at(runtime, i);
		/* relaxed: a look. */
		uint64_t state = weft__load(&task->state, relaxed);

		if (!(state & (WEFT__FREE | WEFT__DONE)) && count++ < 20)
			fprintf(stderr,
				"weft: shutdown: task '%s' (%llx) has not "
				"ended; it %s\n",
				weft__task_label(task),
				(unsigned long long)weft__task_id(task, state),
				state & WEFT__PARKED ? "waits" : "runs");
	}
	weft__blocking_name_survivors(runtime);
	return count;
}

/* The time is up.  False: only calls of threads are left, and they end. */
static bool abandon(struct weft_runtime *runtime)
{
	if (weft__runtime_name_survivors(runtime) == 0)
		return false;
	/* relaxed: published by `left`, or read by this thread alone. */
	weft__store(&runtime->abandoned, true, relaxed);
	weft__waits_give_up(runtime);
	stop_now(runtime);
	return true;
}

/* A worker's part in stopping, once a tick.  False: it leaves its loop. */
bool weft__stop_step(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;
	/* pairs: [runtime.stop] */
	uint32_t stopping = weft__load(&runtime->stopping, acquire);

	if (stopping == WEFT__STOP_NOW)
		return false;
	if (worker->index != 0 ||
	    /* relaxed: published by `stopping`. */
	    runtime->ops->now(runtime) <
		    weft__load(&runtime->stop_by_ns, relaxed))
		return true;
	if (abandon(runtime))
		return false;
	/* relaxed: from here on only this worker uses it. */
	weft__store(&runtime->stop_by_ns, WEFT_NEVER, relaxed);
	return true;
}

/* A park must not outlast the time for stopping. */
uint64_t weft__stop_wait_ns(struct weft__worker *worker, uint64_t wait_ns)
{
	struct weft_runtime *runtime = worker->runtime;
	uint64_t now_ns, by_ns;

	/* pairs: [runtime.stop] */
	if (worker->index != 0 ||
	    weft__load(&runtime->stopping, acquire) == WEFT__STOP_NOT)
		return wait_ns;
	now_ns = runtime->ops->now(runtime);
	/* relaxed: published by `stopping`. */
	by_ns = weft__load(&runtime->stop_by_ns, relaxed);
	if (by_ns == WEFT_NEVER)
		return wait_ns;
	if (by_ns <= now_ns)
		return 0;
	return by_ns - now_ns < wait_ns ? by_ns - now_ns : wait_ns;
}

/* ---- Threads ------------------------------------------------------------- */

/* A thread's life as a worker.  Returns when the driver may be closed. */
static void worker_loop(struct weft__worker *worker)
{
	struct weft__worker *outer = weft__worker_self();
	void *altstack = weft__overflow_thread_init();
	struct weft__exceptions outer_exceptions;

	weft__worker_set(worker);
	/* Of a caller of weft_run() that does so while it handles some. */
	worker->exceptions = weft__exceptions_of_thread();
	outer_exceptions = weft__exceptions_take(worker);
	weft__fiber_thread_init(&worker->own);
	/* relaxed: a number that publishes nothing. */
	weft__store(&worker->thread, (uint32_t)syscall(SYS_gettid), relaxed);
	while (weft__worker_step(worker))
		;
	/* relaxed: no worker helps this one any more. */
	weft__store(&worker->seen_ns, (uint64_t)0, relaxed);
	weft__store(&worker->thread, 0u, relaxed);
	worker->ops->watch(worker, false);
	weft__exceptions_give(worker, outer_exceptions);
	weft__worker_set(outer);
	weft__overflow_thread_fini(altstack);
}

static void *worker_thread(void *arg)
{
	struct weft__worker *worker = arg;
	struct weft_runtime *runtime = worker->runtime;

	worker_loop(worker);
	/* pairs: [runtime.left] */
	weft__add(&runtime->left, 1u, release);
	weft__futex_wake(&runtime->left, INT32_MAX); /* mutate: wake */
	/* pairs: [runtime.closed] */
	while (!weft__load(&runtime->closed, acquire))
		weft__futex_wait(&runtime->closed, 0);
	return NULL;
}

/* Waits for another worker to leave.  After the time is up, does not wait for a
 * worker that runs a task. */
static void close_wait(struct weft_runtime *runtime, uint32_t left,
		       uint64_t *by_ns)
{
	uint64_t now_ns = runtime->ops->now(runtime);

	if (*by_ns == WEFT_NEVER) {
		weft__futex_wait(&runtime->left, left);
	} else if (now_ns < *by_ns) {
		weft__futex_wait_for(&runtime->left, left, *by_ns - now_ns);
	} else {
		*by_ns = WEFT_NEVER;
		/* relaxed: this thread has stored or seen DRAINS before. */
		if (weft__load(&runtime->stopping, relaxed) ==
		    WEFT__STOP_DRAINS)
			(void)abandon(runtime);
	}
}

/* Waits for calls of other threads that are under way and have no task to wait
 * for: they may still have to wake a worker, through the driver. */
static void refs_wait(struct weft_runtime *runtime)
{
	/* pairs: [runtime.ref] */
	uint32_t count = weft__or(&runtime->refs, WEFT__REFS_AWAITED,
				  acquire) |
			 WEFT__REFS_AWAITED;

	while (count != WEFT__REFS_AWAITED) {
		weft__futex_wait(&runtime->refs, count);
		/* pairs: [runtime.ref] */
		count = weft__load(&runtime->refs, acquire);
	}
}

/* Waits until `count` workers are out of their loops, closes the driver, and
 * lets the threads end.  At by_ns it gives up. */
static void close_and_join(struct weft_runtime *runtime, uint32_t count,
			   uint64_t by_ns)
{
	const uint64_t end_by_ns = by_ns;

	for (;;) {
		/* pairs: [runtime.left] */
		uint32_t left = weft__load(&runtime->left, acquire);

		/* relaxed: set by this thread, or by worker 0, which has left
		 * since. */
		if (weft__load(&runtime->abandoned, relaxed)) {
			/* Some may compute for ever; and none may end, since
			 * tasks that are left may have operations in flight. */
			for (uint32_t i = 0; i < runtime->threads_count; i++)
				pthread_detach(runtime->threads[i]);
			weft__watchdog_stop(runtime, end_by_ns);
			return;
		}
		if (left >= count)
			break;
		close_wait(runtime, left, &by_ns);
	}
	weft__blocking_end(runtime);
	weft__watchdog_stop(runtime, end_by_ns);
	refs_wait(runtime);
	runtime->ops->close(runtime);
	/* pairs: [runtime.closed] */
	weft__store(&runtime->closed, 1u, release);
	weft__futex_wake(&runtime->closed, INT32_MAX); /* mutate: wake */
	for (uint32_t i = 0; i < runtime->threads_count; i++)
		pthread_join(runtime->threads[i], NULL);
}

/* Starts threads for the workers from `first` on.  On failure ends them all. */
static int threads_start(struct weft_runtime *runtime, uint32_t first)
{
	int error = 0;

	runtime->threads = weft__memory_zeroed(
		runtime->memory,
		runtime->workers_count * sizeof(*runtime->threads));
	if (!runtime->threads)
		return -ENOMEM;
	for (uint32_t i = first; !error && i < runtime->workers_count; i++) {
		error = pthread_create(
			&runtime->threads[runtime->threads_count], NULL,
			worker_thread, runtime->workers[i]);
		if (!error)
			runtime->threads_count++;
	}
	return -error;
}

/* The result that the calling thread gets. */
static int64_t runtime_end(struct weft_runtime *runtime, int64_t result)
{
	/* relaxed: see close_and_join. */
	if (weft__load(&runtime->abandoned, relaxed))
		return -ETIMEDOUT; /* tasks may still run: nothing is freed */
	weft__runtime_free(runtime);
	return result;
}

static int runtime_undo(struct weft_runtime *runtime, int error)
{
	stop_now(runtime);
	close_and_join(runtime, runtime->threads_count, WEFT_NEVER);
	weft__runtime_free(runtime);
	return weft__not_started(error);
}

static int64_t main_task(void *arg)
{
	struct weft__main_call *call = *(struct weft__main_call **)arg;
	struct weft__worker *worker = weft__worker_self();
	struct weft_runtime *runtime = worker->runtime;

	/* relaxed: a caller that compares it has it from this task. */
	weft__store(&runtime->main_id, weft__running_id(worker->current),
		    relaxed);
	call->result = call->fn(call->arg);
	drain(runtime, drain_by_ns(runtime));
	return 0;
}

weft_fn weft__task_function(weft_fn fn, const void *arg)
{
	return fn == main_task ? (*(struct weft__main_call *const *)arg)->fn :
				 fn;
}

int64_t weft_run(weft_fn fn, void *arg, const struct weft_opts *opts)
{
	struct weft__main_call *call;
	struct weft_task_opts main_opts = WEFT_TASK_OPTS_INIT;
	struct weft_runtime *runtime;
	int error;

	if (!fn)
		return -EINVAL;
	if (weft__worker_self())
		return -EDEADLK;
	error = weft__runtime_new(opts, weft__driver_default(), true, &runtime);
	if (error < 0)
		return weft__not_started(error);
	call = &runtime->main_call;
	call->fn = fn;
	call->arg = arg;
	error = threads_start(runtime, 1);
	main_opts.name = "main";
	if (!error)
		error = weft__watchdog_start(runtime, opts);
	if (!error)
		error = weft__root_go(runtime, NULL, main_task, &call,
				      sizeof(call), &main_opts, false);
	if (error < 0)
		return runtime_undo(runtime, error);
	worker_loop(runtime->workers[0]);
	close_and_join(runtime, runtime->threads_count,
		       /* relaxed: this thread was worker 0. */
		       weft__load(&runtime->stop_by_ns, relaxed));
	return runtime_end(runtime, call->result);
}

int weft_start(const struct weft_opts *opts, struct weft_runtime **ret_runtime)
{
	struct weft_runtime *runtime;
	int error;

	if (!ret_runtime)
		return -EINVAL;
	error = weft__runtime_new(opts, weft__driver_default(), false,
				  &runtime);
	if (error < 0)
		return weft__not_started(error);
	/* The runtime itself counts as a task until it is stopped.
	 * relaxed: no thread runs yet. */
	weft__add(&weft__scope(&runtime->root)->pending, (int64_t)1, relaxed);
	error = threads_start(runtime, 0);
	if (!error)
		error = weft__watchdog_start(runtime, opts);
	if (error < 0)
		return runtime_undo(runtime, error);
	*ret_runtime = runtime;
	return 0;
}

int weft_attach(const struct weft_opts *opts, struct weft_runtime **ret_runtime)
{
	struct weft_opts lone = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	int error;

	if (!ret_runtime || (opts && (opts->size != lone.size ||
				      opts->workers > 1)))
		return -EINVAL;
	if (weft__worker_self())
		return -EDEADLK;
	if (opts)
		lone = *opts;
	lone.workers = 1;
	/* The caller works, but its ring must be one that can be polled. */
	error = weft__runtime_new(&lone, weft__driver_default(), false,
				  &runtime);
	if (error < 0)
		return weft__not_started(error);
	/* As in weft_start().  relaxed: no other thread knows it yet. */
	weft__add(&weft__scope(&runtime->root)->pending, (int64_t)1, relaxed);
	error = weft__watchdog_start(runtime, &lone);
	if (!error)
		error = weft__loop_begin(runtime);
	if (error < 0)
		return runtime_undo(runtime, error);
	*ret_runtime = runtime;
	return 0;
}

/* The caller's thread is the worker until all tasks have ended. */
static int loop_stop(struct weft_runtime *runtime)
{
	int error = weft__loop_end(runtime);

	if (error < 0)
		return error;
	drain(runtime, drain_by_ns(runtime));
	/* pairs: [scope.end] */
	if (weft__sub(&weft__scope(&runtime->root)->pending, (int64_t)1,
		      acq_rel) == 1)
		weft__runtime_drained(runtime);
	worker_loop(runtime->workers[0]);
	close_and_join(runtime, 0,
		       /* relaxed: this thread was worker 0. */
		       weft__load(&runtime->stop_by_ns, relaxed));
	return (int)runtime_end(runtime, 0);
}

int weft_stop(struct weft_runtime *runtime)
{
	struct weft__worker *here = weft__worker_self();
	uint64_t by_ns;

	if (!runtime)
		return -EINVAL;
	if (here && here->runtime == runtime)
		return -EDEADLK;
	if (runtime->loop_thread)
		return loop_stop(runtime);
	/* One worker is the thread of weft_run(), and that call ends the
	 * runtime. */
	if (runtime->threads_count < runtime->workers_count)
		return -EINVAL;
	/* This thread keeps the time: any worker may be computing. */
	by_ns = drain_by_ns(runtime);
	drain(runtime, WEFT_NEVER);
	/* pairs: [scope.end] */
	if (weft__sub(&weft__scope(&runtime->root)->pending, (int64_t)1,
		      acq_rel) == 1)
		weft__runtime_drained(runtime);
	close_and_join(runtime, runtime->threads_count, by_ns);
	return (int)runtime_end(runtime, 0);
}

struct weft_runtime *weft_runtime_self(void)
{
	struct weft__worker *worker = weft__worker_self();

	return worker ? worker->runtime : NULL;
}

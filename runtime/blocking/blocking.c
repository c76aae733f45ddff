/* SPDX-License-Identifier: MIT */
/*
 * Blocking pool - the pool's threads, and the calls that give them work.  The
 * header has the model and the invariants BLK1 to BLK3, job_queue.h the queue
 * of jobs.
 *
 * A relaxed access of `threads` under the pool's lock needs no order of its
 * own; it is atomic because it is a futex too.
 */
#include "runtime/blocking/blocking.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "runtime/base/futex.h"
#include "runtime/base/memory.h"
#include "runtime/blocking/idler.h"
#include "runtime/blocking/job_queue.h"
#include "runtime/sched/spin.h"
#include "runtime/stack/thread.h"

enum { THREADS_DEFAULT = 512, NAMED_MAX = 20 };
#define IDLE_DEFAULT_NS WEFT_SEC(10)
#define STACK_BYTES ((size_t)2 << 20)

enum outcome { HAS_RESULT, HAS_NO_THREAD };

/* How long a task looks for the end of its job before it waits: the time to do
 * what is short, with a thread that looks for it. */
#define LOOK_TASK_NS 20000u

/* As long as other ready operations take. */
#define READY_OP_NS 1500u

struct weft__blocking {
	struct weft__lock lock;
	struct weft__job_queue jobs;	      /* under lock */
	struct weft__job_lane lane;   /* under lock; the default */
	struct weft__idlers idlers;   /* under lock */
	uint32_t threads_max;	      /* immutable */
	uint64_t idle_ns;	      /* immutable */
	weft__atomic(uint32_t) threads; /* set under lock; a futex */
	struct weft__job_lane *at_once; /* under lock; of such jobs, or NULL */
	uint32_t refused;	      /* under lock; threads not made */
	bool warned;		      /* under lock; of that */
	uint64_t done;		      /* under lock; jobs that ran */
	bool ending;		      /* under lock */
	bool has_left;		      /* under lock; BLK3 */
	pthread_t left;		      /* under lock; not joined yet */
	struct weft_runtime *runtime; /* immutable */
};

/* The caller holds the lock.  Returns the new count. */
static uint32_t threads_add(struct weft__blocking *pool, uint32_t n)
{
	/* relaxed: under the lock. */
	uint32_t threads = weft__load(&pool->threads, relaxed) + n;

	weft__store(&pool->threads, threads, relaxed);
	return threads;
}

/* ---- A thread's life ----------------------------------------------------- */

static void job_tell(struct weft__job *job)
{
	if (job->ended)
		job->ended(job);
	else
		weft__waiter_grant(NULL, &job->waiter, HAS_RESULT);
}

/* Ends `done`, if it is not NULL, and returns the next job.  If there is none,
 * adds the thread to the idle ones and returns NULL. */
static struct weft__job *job_next(struct weft__blocking *pool,
				  struct weft__idler *self,
				  struct weft__job *done)
{
	struct weft__job *next;

	weft__lock_take(&pool->lock);
	if (done) {
		weft__job_queue_end(&pool->jobs, done);
		pool->done++;
	}
	next = weft__job_queue_take(&pool->jobs);
	if (!next)
		weft__idler_add(&pool->idlers, self, pool->ending,
				done && done->alone);
	weft__lock_drop(&pool->lock);
	if (done)
		job_tell(done); /* mutate: wake */
	return next;
}

/* The caller holds the lock; this drops it.  The pool may be used after that
 * too: it exists until this thread has been joined. */
static void thread_leave(struct weft__blocking *pool)
{
	pthread_t before = pool->left;
	bool joins = pool->has_left;
	bool last;

	pool->left = pthread_self();
	/* relaxed: a look; if it comes too late, one thread is never joined. */
	pool->has_left = !weft__load(&pool->runtime->abandoned, relaxed);
	if (!pool->has_left)
		pthread_detach(pool->left);
	last = threads_add(pool, UINT32_MAX) == 0 && pool->ending;
	weft__lock_drop(&pool->lock);
	if (joins)
		pthread_join(before, NULL); /* mutate: wake */
	if (last)
		weft__futex_wake(&pool->threads, 1); /* mutate: wake */
}

/* Waits while idle.  Returns false after the thread has left the pool. */
static bool thread_rest(struct weft__blocking *pool, struct weft__idler *self)
{
	bool called;

	weft__idler_wait(pool->runtime, self, pool->idle_ns);
	weft__lock_take(&pool->lock);
	called = weft__idler_is_called(self);
	if (called && !pool->ending) { /* mutate: recheck=false */
		weft__lock_drop(&pool->lock);
		return true;
	}
	if (!called) /* mutate: recheck=false */
		weft__idler_remove(self);
	thread_leave(pool);
	return false;
}

/* The thread has the program's signal mask, since a process that a job starts
 * inherits it: with its signals blocked it would not end by SIGTERM.  So the
 * program's handlers may run here, also while the thread is idle. */
static void *thread_main(void *arg)
{
	struct weft__blocking *pool = arg;
	struct weft__idler self = { 0 };

	(void)pthread_setname_np(pthread_self(), "weft-blocking");
	pthread_sigmask(SIG_SETMASK, &pool->runtime->signals, NULL);
	do {
		struct weft__job *job = NULL;

		while ((job = job_next(pool, &self, job)))
			job->result = job->fn(job->arg);
	} while (thread_rest(pool, &self));
	return NULL;
}

/* ---- Making threads ------------------------------------------------------ */

static int thread_new(struct weft__blocking *pool)
{
	pthread_t thread;

	return weft__thread_make(&thread, STACK_BYTES, thread_main, pool);
}

static void job_name(const char *before, const struct weft__job *job,
		     const char *after)
{
	const struct weft__task *task = job->wait.task;
	const char *lane = job->lane->name;

	if (!task) {
		fprintf(stderr, "weft: %s: a call in lane '%s' %s\n", before,
			lane ? lane : "unnamed", after);
		return;
	}
	fprintf(stderr, "weft: %s: task '%s' (%llx): fn %p in lane '%s' %s\n",
		before, weft__task_label(task),
		(unsigned long long)weft__running_id(job->wait.task),
		(void *)(uintptr_t)job->fn,
		lane ? lane : "unnamed", after);
}

/* Takes all jobs out of the queue; the caller holds the lock.  Returns them as
 * a list. */
static struct weft__waiter *jobs_fail(struct weft__blocking *pool)
{
	struct weft__waiter *first = NULL, **link = &first;
	struct weft__job *job;

	while ((job = weft__job_queue_take(&pool->jobs))) {
		weft__job_queue_end(&pool->jobs, job);
		*link = &job->waiter;
		link = &job->waiter.next;
	}
	*link = NULL;
	return first;
}

/* The same of the jobs that wait for no thread: another job may have theirs. */
static struct weft__waiter *at_once_fail(struct weft__blocking *pool)
{
	struct weft__waiter *first = NULL, **link = &first, *w;

	while (pool->at_once && (w = pool->at_once->waiters.head)) {
		weft__job_queue_remove(&pool->jobs, w->item);
		*link = w;
		link = &w->next;
	}
	*link = NULL;
	return first;
}

static void jobs_tell_failed(struct weft__waiter *w)
{
	struct weft__worker *worker = weft__sync_worker();

	while (w) {
		struct weft__waiter *next = w->next;
		struct weft__job *job = w->item;

		if (job->ended) {
			job->refused = true;
			job->ended(job);
		} else {
			weft__waiter_grant(worker, w, HAS_NO_THREAD);
		}
		w = next;
	}
}

/* Makes the thread for `job`.  The thread is counted already. */
static void thread_make(struct weft__blocking *pool, struct weft__job *job)
{
	struct weft__waiter *failed = NULL;

	if (weft__likely(thread_new(pool) == 0))
		return;
	weft__lock_take(&pool->lock);
	if (threads_add(pool, UINT32_MAX) == 0)
		failed = jobs_fail(pool); /* BLK2; mutate: wake */
	else if (!job->at_once && !pool->warned) {
		pool->warned = true;
		job_name("no more threads for blocking work", job,
			 "waits for those there are");
	}
	if (!failed)
		failed = at_once_fail(pool);
	pool->refused++;
	weft__lock_drop(&pool->lock);
	jobs_tell_failed(failed); /* mutate: wake */
}

/* ---- The pool ------------------------------------------------------------ */

static struct weft__blocking *pool_get(struct weft_runtime *runtime)
{
	/* pairs: [blocking.made] */
	return weft__load(&runtime->blocking, acquire);
}

static struct weft__blocking *pool_make(struct weft_runtime *runtime)
{
	struct weft__blocking *pool = weft__memory_zeroed(runtime->memory,
							  sizeof(*pool));
	struct weft__blocking *other = NULL;

	if (!pool)
		return NULL;
	pool->runtime = runtime;
	pool->lane.name = "default";
	pool->threads_max = runtime->blocking_threads_max ?
				    runtime->blocking_threads_max :
				    THREADS_DEFAULT;
	pool->idle_ns = runtime->blocking_idle_ns ? runtime->blocking_idle_ns :
						    IDLE_DEFAULT_NS;
	/* pairs: [blocking.made] */
	if (weft__cas_acquire(&runtime->blocking, &other, pool, release))
		return pool;
	weft__memory_free(runtime->memory, pool, sizeof(*pool));
	return other;
}

void weft__blocking_end(struct weft_runtime *runtime)
{
	struct weft__blocking *pool = pool_get(runtime);
	weft__atomic(uint32_t) *futex;
	uint32_t threads;
	bool called;

	if (!pool)
		return;
	weft__lock_take(&pool->lock);
	weft__assert(!pool->jobs.queued_count && !pool->jobs.running_count,
		     "a runtime ends with blocking jobs");
	pool->ending = true;
	do {
		called = weft__idler_call(&pool->idlers, &futex);
		weft__lock_drop(&pool->lock);
		weft__idler_wake(futex); /* mutate: wake */
		weft__lock_take(&pool->lock);
	} while (called); /* mutate: retry */
	/* relaxed: under the lock; mutate: retry */
	while ((threads = weft__load(&pool->threads, relaxed))) {
		weft__lock_drop(&pool->lock);
		weft__futex_wait(&pool->threads, threads);
		weft__lock_take(&pool->lock);
	}
	weft__lock_drop(&pool->lock);
	if (pool->has_left)
		pthread_join(pool->left, NULL); /* mutate: wake */
	/* relaxed: no task or thread calls the pool any more. */
	weft__store(&runtime->blocking, NULL, relaxed);
	weft__memory_free(runtime->memory, pool, sizeof(*pool));
}

/* Holds the lock while it prints, so that the job and its names still exist. */
void weft__blocking_name_survivors(struct weft_runtime *runtime)
{
	struct weft__blocking *pool = pool_get(runtime);
	struct weft__waiter *w;
	unsigned count = 0;

	if (!pool)
		return;
	weft__lock_take(&pool->lock);
	for (w = pool->jobs.running.head; w && count++ < NAMED_MAX;
	     w = w->next)
		job_name("shutdown", w->item, "has not returned");
	weft__lock_drop(&pool->lock);
}

/* ---- Calls --------------------------------------------------------------- */

/* Is there a thread for a job that is not to wait for one, and for another that
 * may be what it waits for?  Half of the threads are left to those.  Once a
 * thread could not be made, jobs may wait already that would take the next one.
 * The caller holds the lock. */
static bool has_thread(const struct weft__blocking *pool,
		       const struct weft__job_lane *lane)
{
	/* relaxed: under the lock. */
	return lane->running + lane->queued < pool->threads_max / 2 &&
	       (pool->idlers.first ||
		(!pool->refused && weft__load(&pool->threads, relaxed) <
					   pool->threads_max));
}

/* Queues the job, and calls or makes a thread for it (BLK1).  False: it would
 * have to wait for one. */
static bool job_queue(struct weft__blocking *pool, struct weft__job *job)
{
	weft__atomic(uint32_t) *futex = NULL;
	bool makes = false;

	weft__lock_take(&pool->lock);
	if (job->at_once && !has_thread(pool, job->lane)) {
		weft__lock_drop(&pool->lock);
		return false;
	}
	if (job->at_once)
		pool->at_once = job->lane;
	if (weft__job_queue_add(&pool->jobs, job)) {
		/* relaxed: under the lock. */
		makes = !weft__idler_call(&pool->idlers, &futex) &&
			weft__load(&pool->threads, relaxed) < pool->threads_max;
	}
	if (makes)
		threads_add(pool, 1); /* mutate: wake */
	weft__lock_drop(&pool->lock);
	weft__idler_wake(futex); /* mutate: wake */
	if (makes)
		thread_make(pool, job); /* mutate: wake */
	return true;
}

static bool job_has_ended(void *arg)
{
	struct weft__job *job = arg;

	/* relaxed: a look; the wait acquires. */
	return weft__load(&job->wait.word, relaxed) >= WEFT__WAIT_GRANTED;
}

/* A worker that would sleep looks for the end first.  That counts as ready
 * operations, since meanwhile it does nothing else. */
static void job_look(struct weft__blocking *pool, struct weft__job *job)
{
	struct weft_runtime *runtime = pool->runtime;
	uint64_t now_ns = runtime->ops->now(runtime);

	(void)weft__spin(runtime, &job->lane->spin, LOOK_TASK_NS, job_has_ended,
			 job);
	weft__charge_ops(weft__worker_self(),
			 (runtime->ops->now(runtime) - now_ns) / READY_OP_NS);
}

/* Waits until the job has ended, or until an interruption before it began. */
static int64_t job_wait(struct weft__blocking *pool, struct weft__job *job)
{
	bool queued;
	int r;

	if (job->alone)
		job_look(pool, job);
	job->waited = !job_has_ended(job);
	r = weft__wait(&job->wait, true);
	if (weft__unlikely(r < 0)) {
		weft__lock_take(&pool->lock);
		queued = !job->begun;
		if (queued) /* mutate: recheck=true */
			weft__job_queue_remove(&pool->jobs, job);
		weft__lock_drop(&pool->lock);
		if (queued) /* mutate: recheck=true */
			return r;
		r = job->leave ? job->leave(job->arg, &job->wait, r) :
				 weft__wait(&job->wait, false);
	}
	return r == HAS_NO_THREAD ? -EAGAIN : job->result;
}

static struct weft__job_lane *lane_of(struct weft__blocking *pool,
				      struct weft_lane *lane)
{
	return lane ? (struct weft__job_lane *)(void *)lane : &pool->lane;
}

int weft__blocking_begin(struct weft_lane *lane, struct weft__job *job)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	struct weft__blocking *pool;
	int error;

	if (!task)
		return -EPERM;
	if (!job->fn)
		return -EINVAL;
	error = weft__interrupted(worker, task);
	if (error < 0)
		return error;
	pool = pool_get(worker->runtime);
	if (!pool)
		pool = pool_make(worker->runtime);
	if (!pool)
		return -ENOMEM;
	job->lane = lane_of(pool, lane);
	job->alone = worker->runtime->spins && weft__alone(worker);
	weft__waiter_init(&job->waiter, &job->wait, worker, job, 0);
	weft__wait_on(&job->wait, WEFT__ON_JOB, job);
	return 0;
}

enum weft__follows weft__blocking_follow(struct weft__job *ahead,
					 struct weft__job *job)
{
	struct weft__blocking *pool = pool_get(job->wait.runtime);
	enum weft__follows r;

	weft__lock_take(&pool->lock);
	r = weft__job_queue_follow(&pool->jobs, ahead, job);
	weft__lock_drop(&pool->lock);
	job->follows = r == WEFT__FOLLOWS;
	return r;
}

int64_t weft__blocking_finish(struct weft__job *job)
{
	struct weft__blocking *pool = pool_get(job->wait.runtime);

	return job->follows || job_queue(pool, job) ? job_wait(pool, job) :
						      -EAGAIN;
}

static int64_t run(struct weft_lane *lane, struct weft__job *job)
{
	int64_t r = weft__blocking_begin(lane, job);
	struct weft__worker *worker;

	if (r == 0)
		r = weft__blocking_finish(job);
	worker = weft__worker_self();
	/* The thread may have been done before the task waited.  The caller
	 * charges what it does without a thread. */
	if (!job->waited && !job->at_once && weft__running(worker))
		weft__charge_call(worker);
	return r;
}

int64_t weft_blocking_lane(struct weft_lane *lane, weft_fn fn, void *arg)
{
	struct weft__job job = { .fn = fn, .arg = arg };

	return run(lane, &job);
}

int64_t weft__blocking_leave(struct weft_lane *lane, weft_fn fn, void *arg,
			     int (*leave)(void *arg, struct weft__wait *wait,
					  int why))
{
	struct weft__job job = {
		.fn = fn,
		.arg = arg,
		.leave = leave,
		.at_once = true,
	};

	return run(lane, &job);
}

int64_t weft_blocking(weft_fn fn, void *arg)
{
	return weft_blocking_lane(NULL, fn, arg);
}

int weft__blocking_submit(struct weft_runtime *runtime, struct weft_lane *lane,
			  struct weft__job *job)
{
	struct weft__blocking *pool = pool_get(runtime);

	if (!pool)
		pool = pool_make(runtime);
	if (!pool)
		return -ENOMEM;
	job->lane = lane_of(pool, lane);
	job->waiter.item = job;
	(void)job_queue(pool, job);
	return 0;
}

bool weft__blocking_withdraw(struct weft_runtime *runtime,
			     struct weft__job *job)
{
	struct weft__blocking *pool = pool_get(runtime);
	bool queued;

	if (!pool)
		return false;
	weft__lock_take(&pool->lock);
	queued = !job->begun && job->waiter.queued;
	if (queued) /* mutate: recheck=true */
		weft__job_queue_remove(&pool->jobs, job);
	weft__lock_drop(&pool->lock);
	return queued;
}

int weft_blocking_stats_get(struct weft_runtime *runtime,
			struct weft_blocking_stats *ret_stats)
{
	struct weft_blocking_stats stats = { 0 };
	struct weft__blocking *pool;

	if (!runtime || !ret_stats)
		return -EINVAL;
	pool = pool_get(runtime);
	if (pool) {
		weft__lock_take(&pool->lock);
		/* relaxed: under the lock. */
		stats.threads = weft__load(&pool->threads, relaxed);
		stats.running = pool->jobs.running_count;
		stats.queued = pool->jobs.queued_count;
		stats.threads_refused = pool->refused;
		stats.done = pool->done;
		weft__lock_drop(&pool->lock);
	}
	*ret_stats = stats;
	return 0;
}

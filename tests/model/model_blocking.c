/* SPDX-License-Identifier: MIT */
/*
 * Model of the pool for blocking work (runtime/blocking/blocking.c,
 * job_queue.c).  A job runs once, on one thread, and its task gets the result;
 * or the job is cancelled and never begins.  The jobs of a lane keep the lane's
 * limit.  No job waits for a thread that does not come.  All threads are
 * joined, and no thread touches the pool after its end.
 */
#define TASKS_CLOCK
#include "tests/model/waits.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

enum { TASKS = 3, IDLE_NS = 1000 };

/*
 * Threads: the model's threads from `threads_first` on become the pool's, one
 * after the other, each once.
 */

static struct model_mutex threads_lock;
static unsigned threads_first, threads_begun; /* under threads_lock */
static unsigned refusals;		      /* likewise; still to come */
static struct model_event start[MODEL_THREADS], end[MODEL_THREADS];
static void *start_arg[MODEL_THREADS];
static bool joined[MODEL_THREADS];

static int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	unsigned i = 0;

	(void)fn;
	model_lock(&threads_lock);
	if (refusals)
		refusals--;
	else
		i = threads_first + threads_begun++;
	model_unlock(&threads_lock);
	if (!i)
		return EAGAIN;
	model_assert(i < MODEL_THREADS, "the model has threads enough");
	*thread = (pthread_t)(uintptr_t)i;
	start_arg[i] = arg;
	model_post(&start[i]);
	return 0;
}

static void thread_joined(pthread_t thread)
{
	uintptr_t i = (uintptr_t)thread;

	(void)model_wait(&end[i]);
	model_assert(!joined[i], "a thread is joined once");
	joined[i] = true;
}

/* Memory for one pool per task. */
static _Alignas(64) unsigned char memory[TASKS][512];

static void *memory_new(size_t bytes)
{
	return bytes <= sizeof(memory[0]) ? memory[model_self()] : NULL;
}

static void memory_free(void *freed)
{
	model_free(freed, sizeof(memory[0]));
}

static void print_nothing(FILE *file, const char *format, ...)
{
	(void)file, (void)format;
}

/* Each thread's own: time passes when the thread has been idle for long. */
static uint64_t clock_ns[MODEL_THREADS];

static uint64_t driver_now(struct weft_runtime *of)
{
	(void)of;
	return clock_ns[model_self()];
}

/* Waits until a wake, or for the time given, in which anything may happen,
 * unless that is for ever. */
static void wait_for(weft__atomic(uint32_t) * word, uint32_t value,
		     uint64_t wait_ns)
{
	if (wait_ns < WEFT_NEVER / 2 && model_choose(2))
		clock_ns[model_self()] += wait_ns;
	else
		weft__futex_wait(word, value);
}

/* A look may end at any moment. */
static bool look_at(struct weft_runtime *of, bool (*found)(void *arg),
		    void *arg)
{
	return of->spins && model_choose(2) && found(arg);
}

#define weft__spin(of, spin, max_ns, found, arg) \
	((void)(spin), look_at(of, found, arg))
#define weft__memory_zeroed(from, bytes) ((void)(from), memory_new(bytes))
#define weft__memory_free(from, memory, bytes) \
	((void)(from), (void)(bytes), memory_free(memory))
#undef fprintf /* of the C library, with checked calls */
#define fprintf print_nothing
#define pthread_attr_init(attr) ((void)(attr), 0)
#define pthread_attr_setstacksize(attr, bytes) \
	((void)(attr), (void)(bytes), 0)
#define pthread_attr_destroy(attr) ((void)(attr))
#define pthread_create(thread, attr, fn, arg) thread_start(thread, fn, arg)
#define pthread_detach(thread) ((void)(thread))
#define pthread_join(thread, ret) thread_joined(thread)
#define pthread_self() ((pthread_t)(uintptr_t)model_self())
#define pthread_setname_np(thread, name) ((void)(thread), 0)
#define pthread_sigmask(how, set, before) ((void)(set), (void)(before))
#define weft__futex_wait_for wait_for
#include "runtime/stack/thread.c"
#include "runtime/blocking/blocking.c"
#include "runtime/blocking/idler.c"
#include "runtime/blocking/job_queue.c"
#undef weft__spin
#undef weft__memory_zeroed
#undef weft__memory_free
#undef fprintf
#undef weft__futex_wait_for

/* Becomes one of the pool's threads, if the pool starts it. */
static void pool_thread(void *arg)
{
	unsigned self = model_self();

	(void)arg;
	model_daemon();
	(void)model_wait(&start[self]);
	(void)thread_main(start_arg[self]);
	model_post(&end[self]);
}

/*
 * Setting up: the first threads are tasks, and the others are the pool's.
 */

static struct weft_lane lane;
/* A line of jobs, as io/position.c keeps one: a job is alive while its task can
 * be the last. */
static struct weft__lock line_lock;
static struct weft__job *line_last; /* under line_lock */
/* Each task reports to the one that ends the pool. */
static struct model_event is_done[MODEL_THREADS];
/* Informs a job that its lane was seen to be bound. */
static struct model_event seen;
/* By thread: the result of its call, and how often its job ran. */
static int64_t outcome[MODEL_THREADS];
static unsigned ran[MODEL_THREADS];

static void setup_tasks(unsigned tasks, unsigned threads_max, uint64_t idle_ns)
{
	waits_setup(tasks);
	memset(memory, 0, sizeof(memory));
	memset(&threads_lock, 0, sizeof(threads_lock));
	memset(start, 0, sizeof(start));
	memset(end, 0, sizeof(end));
	memset(joined, 0, sizeof(joined));
	memset(clock_ns, 0, sizeof(clock_ns));
	memset(is_done, 0, sizeof(is_done));
	memset(&seen, 0, sizeof(seen));
	memset(outcome, 0, sizeof(outcome));
	memset(ran, 0, sizeof(ran));
	for (unsigned i = tasks; i < MODEL_THREADS; i++)
		waits_foreign(i);
	threads_first = tasks;
	threads_begun = refusals = 0;
	runtime.blocking_threads_max = threads_max;
	runtime.blocking_idle_ns = idle_ns;
	memset(&line_lock, 0, sizeof(line_lock));
	line_last = NULL;
	lane = (struct weft_lane)WEFT_LANE_INIT("one at a time", 1);
	model_name(memory, "pool");
	model_name(&lane, "lane");
	model_name(&runtime.blocking, "blocking");
}

static void setup_1(void *arg)
{
	(void)arg;
	setup_tasks(1, 1, IDLE_NS);
}

static void setup_1_looks(void *arg)
{
	setup_1(arg);
	runtime.spins = true;
}

static void setup_2(void *arg)
{
	(void)arg;
	setup_tasks(2, 1, IDLE_NS);
}

static void setup_2_threads(void *arg)
{
	(void)arg;
	setup_tasks(2, 2, WEFT_NEVER);
}

static void setup_3(void *arg)
{
	(void)arg;
	setup_tasks(3, 1, WEFT_NEVER);
}

/* Task 1 belongs to another runtime, which has a thread too. */
static void setup_elsewhere(void *arg)
{
	setup_2_threads(arg);
	waits_elsewhere(1);
}

static void setup_refused(void *arg)
{
	setup_1(arg);
	refusals = 1;
}

static void setup_2_refused(void *arg)
{
	setup_2_threads(arg);
	refusals = 1;
}

/* The argument of a job, on the stack of its task. */
struct work {
	unsigned thread;
	int64_t before, after;
	bool alone, in_lane;
};

static bool lane_is_bound(void)
{
	/* relaxed: publishes nothing else. */
	return weft__load(&((struct weft__job_lane *)(void *)&lane)->jobs,
			  relaxed);
}

static int64_t job_fn(void *arg)
{
	struct work *w = arg;

	model_assert(w->before == 5, "what its task wrote is seen");
	model_assert(ran[w->thread]++ == 0, "a job runs once");
	/* A second job at the same time would race here. */
	if (w->alone)
		guarded++;
	model_assert(!w->in_lane || lane_is_bound(),
		     "a lane with jobs is bound");
	w->after = 6;
	return 7;
}

static __attribute__((noinline)) int64_t
blocking_call(weft_fn fn, struct weft_lane *in, struct work *w)
{
	return weft_blocking_lane(in, fn, w);
}

static void call_job_of(weft_fn fn, struct weft_lane *in)
{
	unsigned self = model_self();
	struct work w = { .thread = self, .before = 5, .alone = in != NULL,
			  .in_lane = in != NULL };

	outcome[self] = blocking_call(fn, in, &w);
	call_over();
	if (outcome[self] == 7)
		model_assert(w.after == 6 && ran[self] == 1,
			     "what a job wrote is seen");
	else
		model_assert((outcome[self] == -ECANCELED ||
			      outcome[self] == -EAGAIN) &&
				     w.after == 0 && ran[self] == 0,
			     "who has no result has not begun");
	model_data_write(&w);
	model_post(&is_done[self]);
}

static void call_job(struct weft_lane *in)
{
	call_job_of(job_fn, in);
}

static __attribute__((noinline)) int64_t line_call(struct work *w)
{
	struct weft__job job = { .fn = job_fn, .arg = w };
	int64_t r = weft__blocking_begin(NULL, &job);

	if (r < 0)
		return r;
	weft__lock_take(&line_lock);
	if (line_last)
		(void)weft__blocking_follow(line_last, &job);
	line_last = &job;
	weft__lock_drop(&line_lock);
	r = weft__blocking_finish(&job);
	weft__lock_take(&line_lock);
	if (line_last == &job)
		line_last = NULL;
	weft__lock_drop(&line_lock);
	return r;
}

static void call_in_line(bool alone)
{
	unsigned self = model_self();
	struct work w = { .thread = self, .before = 5, .alone = alone };

	outcome[self] = line_call(&w);
	call_over();
	model_assert((outcome[self] == 7) == (ran[self] == 1),
		     "a job in a line runs once, or its task learns why not");
	model_data_write(&w);
	model_post(&is_done[self]);
}

/* Runs when no job is left. */
static void end_pool(unsigned tasks)
{
	for (unsigned i = 0; i < tasks; i++)
		(void)model_wait(&is_done[i]);
	weft__blocking_end(&runtime);
	if (pool[1].runtime == &other_runtime)
		weft__blocking_end(&other_runtime);
	/* No thread is left that could look at it. */
	for (unsigned i = 0; i < threads_begun; i++)
		model_assert(joined[threads_first + i],
			     "all threads are joined");
	model_free(&runtime.refs, sizeof(runtime.refs));
}

static void call_job_again(struct weft_lane *in)
{
	ran[model_self()] = 0;
	call_job(in);
}

THREAD(blocks, call_job(NULL);)
THREAD(blocks_in_lane, call_job(&lane);)
THREAD(blocks_and_ends, call_job(NULL); end_pool(1);)
THREAD(blocks_twice_and_ends, call_job(NULL); call_job_again(NULL);
       end_pool(1);)
THREAD(blocks_and_ends_2, call_job(NULL); end_pool(2);)
THREAD(blocks_in_lane_and_ends_2, call_job(&lane); end_pool(2);)
THREAD(cancels_0, cancel(0); model_post(&is_done[model_self()]);)
THREAD(cancels_1, cancel(1); model_post(&is_done[model_self()]);)
THREAD(in_line, call_in_line(true);)
THREAD(in_line_and_ends_2, call_in_line(true); end_pool(2);)
THREAD(in_any_line, call_in_line(false);)
THREAD(in_any_line_and_ends_2, call_in_line(false); end_pool(2);)
THREAD(in_any_line_and_ends_3, call_in_line(false); end_pool(3);)
THREAD(cancels_1_and_follows, cancel(1); call_in_line(false);)
THREAD(blocks_and_ends_3, call_job(NULL); end_pool(3);)

static int64_t job_until_seen(void *arg)
{
	(void)model_wait(&seen);
	return job_fn(arg);
}

static int64_t job_seen(void *arg)
{
	model_post(&seen);
	return job_fn(arg);
}

/* A runtime has jobs in the lane after the other runtime had.  Only the word of
 * the lane orders the two. */
static void blocks_in_lane_after_other(void *arg)
{
	(void)arg;
	while (!lane_is_bound())
		weft__spin_hint();
	model_post(&seen);
	while (lane_is_bound())
		weft__spin_hint();
	call_job(&lane);
}

THREAD(blocks_in_lane_until_seen, call_job_of(job_until_seen, &lane);
       end_pool(2);)

/* One of two jobs ends when the other runs. */
THREAD(blocks_until_seen, call_job_of(job_until_seen, NULL); end_pool(2);)
THREAD(blocks_and_is_seen, call_job_of(job_seen, NULL);)

/* Two tasks make the pool, and use it immediately. */
static void makes_pool(void *arg)
{
	struct weft__blocking *made = pool_make(&runtime);

	(void)arg;
	model_assert(made->threads_max == 1, "it is made");
	weft__lock_take(&made->lock);
	made->refused++;
	weft__lock_drop(&made->lock);
}

static void check_results(unsigned tasks)
{
	tasks_check();
	for (unsigned i = 0; i < tasks; i++)
		model_assert(outcome[i] == 7, "each has its result");
}

static void check_1(void *arg)
{
	(void)arg;
	check_results(1);
}

static void check_2(void *arg)
{
	(void)arg;
	check_results(2);
}

static void check_quiet(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(!runtime.blocking, "the pool is gone");
}

static void check_made(void *arg)
{
	(void)arg;
	model_assert(runtime.blocking->refused == 2, "both have the same");
}

/* The lane is bound to no pool. */
static void check_shard(void *arg)
{
	const struct weft__job_lane *l = (const void *)&lane;

	check_quiet(arg);
	model_assert(!l->jobs && !l->queued && !l->running && !l->in_turn &&
			     queue_empty(&l->waiters),
		     "the lane has no jobs");
}

static void check_lane_2(void *arg)
{
	check_shard(arg);
	check_results(2);
}

static void check_line(void *arg)
{
	check_quiet(arg);
	model_assert(!line_last, "nobody is left in the line");
}

static void check_line_2(void *arg)
{
	check_line(arg);
	check_results(2);
}

static void check_refused(void *arg)
{
	check_quiet(arg);
	model_assert(outcome[0] == -EAGAIN, "there is no thread");
}

MODEL(a_job_is_run, setup_1, check_1, WAITS(3), blocks_and_ends, pool_thread)
MODEL(an_idle_thread_is_called, setup_1, check_1, WAITS_NEWEST(2),
      blocks_twice_and_ends, pool_thread, pool_thread)
MODEL(a_thread_that_looks_is_called, setup_1_looks, check_1, WAITS_NEWEST(1),
      blocks_twice_and_ends, pool_thread, pool_thread)
MODEL(two_make_the_pool, setup_2_threads, check_2, WAITS_NEWEST(1),
      blocks_and_ends_2, blocks, pool_thread, pool_thread)
MODEL(two_make_one_pool, setup_2, check_made, WAITS(3), makes_pool, makes_pool)
MODEL(two_jobs_one_thread, setup_2, check_2, WAITS_NEWEST(1), blocks_and_ends_2,
      blocks, pool_thread, pool_thread)
MODEL(cancel_meets_job, setup_2, check_quiet, WAITS_NEWEST(2),
      blocks_and_ends_2, cancels_0, pool_thread)
MODEL(cancel_meets_job_in_shard, setup_2, check_shard, WAITS_NEWEST(2),
      blocks_in_lane_and_ends_2, cancels_0, pool_thread)
MODEL(cancel_meets_job_behind_another, setup_3, check_quiet, WAITS_NEWEST(1),
      blocks_and_ends_3, blocks, cancels_1, pool_thread)
MODEL(a_lane_keeps_its_limit, setup_2_threads, check_lane_2, WAITS_NEWEST(1),
      blocks_in_lane_and_ends_2, blocks_in_lane, pool_thread, pool_thread)
MODEL(a_lane_of_two_runtimes, setup_elsewhere, check_lane_2, WAITS_NEWEST(1),
      blocks_in_lane_until_seen, blocks_in_lane_after_other, pool_thread,
      pool_thread)
MODEL(two_jobs_run_at_once, setup_2_threads, check_2, WAITS_NEWEST(1),
      blocks_until_seen, blocks_and_is_seen, pool_thread, pool_thread)
MODEL(no_thread_can_be_made, setup_refused, check_refused, WAITS(3),
      blocks_and_ends, pool_thread)
MODEL(one_thread_can_be_made, setup_2_refused, check_quiet, WAITS_NEWEST(1),
      blocks_and_ends_2, blocks, pool_thread, pool_thread)
MODEL(jobs_in_line_run_alone, setup_2_threads, check_line_2, WAITS_NEWEST(1),
      in_line_and_ends_2, in_line, pool_thread, pool_thread)
MODEL(cancel_meets_first_in_line, setup_3, check_line, WAITS_NEWEST(1),
      in_any_line_and_ends_3, in_any_line, cancels_0, pool_thread)
MODEL(cancel_meets_next_in_line, setup_3, check_line, WAITS_NEWEST(1),
      in_any_line_and_ends_3, in_any_line, cancels_1, pool_thread)
MODEL(next_follows_one_that_is_taken_back, setup_3, check_line,
      WAITS_NEWEST(1), in_any_line_and_ends_3, in_any_line,
      cancels_1_and_follows, pool_thread)
MODEL(no_thread_for_a_line, setup_2_refused, check_line, WAITS_NEWEST(1),
      in_any_line_and_ends_2, in_any_line, pool_thread, pool_thread)

int main(void)
{
	const TTest *const tests[] = {
		a_job_is_run,
		an_idle_thread_is_called,
		a_thread_that_looks_is_called,
		two_make_the_pool,
		two_make_one_pool,
		two_jobs_one_thread,
		cancel_meets_job,
		cancel_meets_job_in_shard,
		cancel_meets_job_behind_another,
		a_lane_keeps_its_limit,
		a_lane_of_two_runtimes,
		two_jobs_run_at_once,
		no_thread_can_be_made,
		one_thread_can_be_made,
		jobs_in_line_run_alone,
		cancel_meets_first_in_line,
		cancel_meets_next_in_line,
		next_follows_one_that_is_taken_back,
		no_thread_for_a_line,
		NULL,
	};

	return kit_main("blocking", tests);
}

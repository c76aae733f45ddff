/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/pool: the pool of threads for blocking jobs at its edges.
 *
 * Covered: how the threads end with the runtime, many runtimes side by side and
 * one after the other, what happens to jobs when no thread can be made, and
 * how long a task looks for the end of its job.
 */
#include "runtime/blocking/job_queue.h"
#include "runtime/sched/spin.h"
#include "tests/support/blocking_scene.h"
#include "tests/support/refuse_threads.h"
#include "tests/support/stderr_capture.h"

/* ---- The end of a runtime ------------------------------------------------ */

static struct gate held;

static int submit_passer(struct weft_runtime *runtime, const char *name,
			 struct weft_lane *lane, int64_t *ret_result)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct passer passer = { &held, lane, ret_result };

	opts.name = name;
	return weft_submit(runtime, pass, &passer, sizeof(passer), &opts);
}

static void await_queued(struct weft_runtime *runtime, unsigned count)
{
	struct weft_blocking_stats stats;

	do {
		thread_pause_ns(100000);
		ck_assert_int_eq(weft_blocking_stats_get(runtime, &stats), 0);
	} while (stats.queued != count);
}

/* The end waits for the job that is held: the runtime is there until then. */
static void *open_when_none_is_queued(void *runtime)
{
	await_queued(runtime, 0);
	gate_open(&held);
	return NULL;
}

/* The pool has one thread: the end waits for the job that runs, and cancels the
 * jobs that are queued. */
START_TEST(end_waits_for_what_runs_and_cancels_what_is_queued)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	int64_t results[2] = { 0 };
	int before = fds_open();
	pthread_t thread;

	opts.workers = _i ? 2 : 1;
	opts.blocking_threads_max = 1;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(submit_passer(runtime, NULL, NULL,
					       &results[i]),
				 0);
		while (weft__load(&held.came, acquire) != 1)
			thread_pause_ns(1000000);
		await_queued(runtime, i);
	}
	ck_assert_int_eq(pthread_create(&thread, NULL,
					open_when_none_is_queued,
					runtime),
			 0);
	ck_assert_int_eq(weft_stop(runtime), 0);
	ck_assert_uint_eq(weft__load(&held.done, acquire), 1);
	ck_assert_int_eq(results[0], 7);
	ck_assert_int_eq(results[1], -ECANCELED);
	pthread_join(thread, NULL);
	expect_threads(0);
	ck_assert_int_eq(fds_open(), before);
}
END_TEST

static struct weft_lane dns = WEFT_LANE_INIT("dns", 1);

static void expect_named(const char *text)
{
	char fn[64];

	snprintf(fn, sizeof(fn), "fn %p in lane 'dns' has not returned",
		 (void *)(uintptr_t)gate_pass);
	ck_assert_msg(strstr(text, "task 'resolver'") && strstr(text, fn) &&
			      strstr(text, "lane 'default'"),
		      "it said: %s", text);
	/* A job that has not begun is not listed as outliving its runtime. */
	ck_assert_msg(!strstr(text, "task 'waits'"), "it said: %s", text);
}

static int64_t leave_jobs(void *arg)
{
	struct weft_runtime *runtime = weft_runtime_self();

	(void)arg;
	ck_assert_int_eq(submit_passer(runtime, "resolver", &dns, NULL), 0);
	wait_until(weft__load(&held.came, acquire) == 1);
	ck_assert_int_eq(submit_passer(runtime, "waits", &dns, NULL), 0);
	wait_until(pool_stats().queued == 1);
	ck_assert_int_eq(submit_passer(runtime, "zip", NULL, NULL), 0);
	wait_until(weft__load(&held.came, acquire) == 2);
	return 0;
}

START_TEST(jobs_that_outlive_run_are_named)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int64_t r;

	opts.workers = _i ? 2 : 1;
	/* The task that is cancelled ends meanwhile, on a busy machine too. */
	opts.shutdown_ns = WEFT_MS(500);
	said_begin();
	r = weft_run(leave_jobs, NULL, &opts);
	expect_named(said_end());
	ck_assert_int_eq(r, -ETIMEDOUT);
	leave_memory();
}
END_TEST

/* The jobs end after the runtime's workers have gone; their threads still
 * exit. */
START_TEST(jobs_that_outlive_stop_are_named_and_may_end)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	opts.workers = _i ? 2 : 1;
	opts.shutdown_ns = WEFT_MS(100);
	opts.blocking_idle_ns = WEFT_MS(1);
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	ck_assert_int_eq(submit_passer(runtime, "resolver", &dns, NULL), 0);
	ck_assert_int_eq(submit_passer(runtime, "zip", NULL, NULL), 0);
	while (weft__load(&held.came, acquire) != 2)
		thread_pause_ns(1000000);
	said_begin();
	ck_assert_int_eq(weft_stop(runtime), -ETIMEDOUT);
	expect_named(said_end());
	ck_assert_int_eq(threads_alive(), 2);
	gate_open(&held);
	expect_threads(0);
	ck_assert_uint_eq(weft__load(&held.done, acquire), 2);
	leave_memory();
}
END_TEST

/* ---- Many runtimes ------------------------------------------------------ */

/* A cycle takes long in a sanitizer's build. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN) || defined(WEFT_VALGRIND)
enum { CYCLES = 100 };
#else
enum { CYCLES = 1000 };
#endif

static int64_t three_jobs(void *arg)
{
	struct gate gate = { 0 };

	(void)arg;
	gate_open(&gate);
	WEFT_SUPERVISE(all)
		pass_start_many(all, 3, &gate, &dns);
	return weft__load(&gate.done, relaxed) == 3 ? 0 : -EPROTO;
}

START_TEST(a_thousand_runtimes_leave_nothing)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int fds = fds_open(), maps = 0;

	opts.workers = 1;
	opts.ring_entries = 8;
	for (int i = 0; i < CYCLES; i++) {
		if (i == CYCLES / 10)
			maps = mappings();
		ck_assert_int_eq(weft_run(three_jobs, NULL, &opts), 0);
		expect_threads(0);
		ck_assert_int_eq(fds_open(), fds);
	}
	ck_assert_int_le(mappings(), maps + CYCLES / 4);
}
END_TEST

static int64_t give_up_at_once(void *arg)
{
	(void)arg;
	WEFT_WITHIN(WEFT_US(1))
		(void)(weft_blocking(nothing_to_do, NULL) == 0);
	return 0;
}

/* The pool's thread starts late: in place of its job it finds the end of the
 * runtime. */
START_TEST(thread_that_comes_too_late_leaves_at_once)
{
	weft_nsec start = weft_now();

	for (int i = 0; i < 50; i++)
		pool_run(give_up_at_once, 1, 0, WEFT_SEC(60));
	ck_assert_uint_lt(weft_now() - start, WEFT_SEC(30));
	expect_threads(0);
}
END_TEST

/* ---- Threads that cannot be made ---------------------------------------- */

POOL_TEST(without_any_thread_the_call_fails, 0, 0)
{
	struct gate gate = { 0 };

	refuse_threads();
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert_int_eq(weft_blocking(gate_pass, &gate), -EAGAIN);
		ck_assert_uint_eq(pool_stats().threads_refused, i);
		ck_assert_uint_eq(pool_stats().threads, 0);
		ck_assert_uint_eq(pool_stats().queued, 0);
	}
	ck_assert_uint_eq(pool_stats().running, 0);
	ck_assert_uint_eq(pool_stats().done, 0);
	ck_assert_uint_eq(weft__load(&gate.came, relaxed), 0);
	return 0;
}

static int64_t fail_often(void *arg)
{
	struct weft_lane *lane = *(struct weft_lane **)arg;

	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(weft_blocking_lane(lane, nothing_to_do, NULL),
				 -EAGAIN);
	return 0;
}

/* There are two workers.  A task on one waits for a thread that the other fails
 * to make; and jobs wait in a lane for which no thread was made. */
POOL_TEST(no_job_waits_for_a_thread_that_is_not_made, 0, 0)
{
	struct weft_lane *lanes[] = { NULL, &dns };

	refuse_threads();
	WEFT_SUPERVISE(all)
		for (int i = 0; i < 8; i++)
			ck_assert_int_eq(WEFT_GO(all, fail_often,
						 lanes[i % 2]),
					 0);
	ck_assert_uint_eq(pool_stats().queued, 0);
	ck_assert_uint_eq(pool_stats().threads, 0);
	return 0;
}

static const char *count_and_find(const char *text, const char *word,
				  int count)
{
	const char *at = text, *first = strstr(text, word);

	for (; (at = strstr(at, word)); at++)
		count--;
	ck_assert_msg(count == 0, "it said: %s", text);
	return first;
}

POOL_TEST(job_that_gets_no_thread_waits_for_those_there_are, 0, 0)
{
	struct gate gate = { 0 };
	int64_t results[4] = { 0 };
	const char *text;

	WEFT_SUPERVISE(all) {
		pass_start(all, &gate, NULL, &results[0]);
		wait_until(weft__load(&gate.came, acquire) == 1);
		refuse_threads();
		said_begin();
		for (unsigned i = 1; i < 4; i++) {
			pass_start(all, &gate, i == 1 ? &dns : NULL,
				   &results[i]);
			wait_until(pool_stats().threads_refused == i);
		}
		text = said_end();
		/* The message is printed once. */
		text = count_and_find(text, "no more threads", 1);
		ck_assert_msg(strstr(text, "task 'unnamed'") &&
				      strstr(text, "in lane 'dns' waits"),
			      "it said: %s", text);
		ck_assert_uint_eq(pool_stats().threads, 1);
		ck_assert_uint_eq(pool_stats().queued, 3);
		gate_open(&gate);
	}
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(results[i], 7);
	ck_assert_uint_eq(weft__load(&gate.max_inside, relaxed), 1);
	return 0;
}

/* ---- Looking for the end of a job ---------------------------------------- */

static int64_t take_long(void *arg)
{
	(void)arg;
	thread_pause_ns(1000000);
	return 0;
}

static uint32_t misses_in(struct weft_lane *lane, weft_fn fn)
{
	struct weft__job_lane *in = (struct weft__job_lane *)(void *)lane;

	ck_assert_int_eq(weft_blocking_lane(lane, fn, NULL), 0);
	/* relaxed: only this task has jobs in the lane. */
	return weft__load(&in->spin.misses, relaxed);
}

/* A task that is alone looks before it waits while that saves waits, and tries
 * looking again now and then. */
POOL_TEST(task_whose_jobs_take_long_no_longer_looks, 1, 0)
{
	struct weft_lane lane = WEFT_LANE_INIT("looks", 0);
	uint32_t misses = 0;
	bool tries = false;

	if (!weft_runtime_self()->spins)
		return 0;
	/* A task that is held up while it looks may find that it was worth
	 * it. */
	for (int i = 0; i < 1000 && misses < WEFT__SPIN_MISSES_MAX; i++)
		misses = misses_in(&lane, take_long);
	ck_assert_uint_ge(misses, WEFT__SPIN_MISSES_MAX);
	for (int i = 0; i < WEFT__SPIN_SKIPS; i++)
		tries |= misses_in(&lane, nothing_to_do) <
			 WEFT__SPIN_MISSES_MAX;
	ck_assert(tries);
	return 0;
}

/* Or a loop of jobs that end before their task waits would never give way. */
POOL_TEST(job_counts_as_a_ready_operation, 1, 0)
{
	enum { LEFT = 100 };

	for (int i = 0; i < 100; i++) {
		weft__worker_self()->ops_left = LEFT;
		ck_assert_int_eq(weft_blocking(nothing_to_do, NULL), 0);
		/* It has waited, and has a new budget, or it has not. */
		ck_assert_int_ne(weft__worker_self()->ops_left, LEFT);
	}
	return 0;
}

static TCase *looking(void)
{
	TCase *tcase = tcase_create("looking");

	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, task_whose_jobs_take_long_no_longer_looks);
	io_add_test(tcase, job_counts_as_a_ready_operation);
	return tcase;
}

static TCase *ending(void)
{
	TCase *tcase = tcase_create("ending");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase,
			    end_waits_for_what_runs_and_cancels_what_is_queued,
			    0, 2);
	tcase_add_loop_test(tcase, jobs_that_outlive_run_are_named, 0, 2);
	tcase_add_loop_test(tcase, jobs_that_outlive_stop_are_named_and_may_end,
			    0, 2);
	tcase_add_test(tcase, a_thousand_runtimes_leave_nothing);
	tcase_add_test(tcase, thread_that_comes_too_late_leaves_at_once);
	return tcase;
}

static TCase *refused(void)
{
	TCase *tcase = tcase_create("refused");

	io_add_test(tcase, without_any_thread_the_call_fails);
	io_add_test(tcase, no_job_waits_for_a_thread_that_is_not_made);
	io_add_test(tcase, job_that_gets_no_thread_waits_for_those_there_are);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("blocking/pool");

	suite_add_tcase(suite, ending());
	suite_add_tcase(suite, looking());
	if (HAS_FILTERS)
		suite_add_tcase(suite, refused());
	return io_tests_run(suite);
}

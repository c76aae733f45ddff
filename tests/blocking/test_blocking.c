/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/blocking: weft_blocking(), which runs a function that blocks on
 * a thread of the pool while the calling task waits.
 *
 * Covered: what the job's thread may do and which signals it has blocked, the
 * number of threads and how long an idle one stays, cancellation and deadlines
 * of waiting jobs, and a storm with random interruptions.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "tests/support/blocking_scene.h"

/* ---- The call ----------------------------------------------------------- */

struct seen {
	long thread;
	char name[16];
	sigset_t blocked;
	int64_t sleeps, blocks, scope;
	struct weft_runtime *runtime;
};

static int64_t look_around(void *arg)
{
	struct seen *seen = arg;
	struct weft_scope scope;

	seen->thread = syscall(SYS_gettid);
	ck_assert_int_eq(pthread_getname_np(pthread_self(), seen->name,
					    sizeof(seen->name)),
			 0);
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked), 0);
	seen->sleeps = weft_sleep(1);
	seen->blocks = weft_blocking(nothing_to_do, NULL);
	seen->scope = weft_group_begin(&scope);
	seen->runtime = weft_runtime_self();
	return INT64_MIN;
}

POOL_TEST(function_runs_on_a_thread_beside_the_workers, 0, 0)
{
	struct seen seen = { 0 };

	ck_assert_uint_eq(pool_stats().threads, 0);
	ck_assert_int_eq(threads_alive(), 0);
	ck_assert_int_eq(weft_blocking(look_around, &seen), INT64_MIN);
	ck_assert_uint_eq(pool_stats().threads, 1);
	ck_assert_int_eq(threads_alive(), 1);
	ck_assert_int_ne(seen.thread, syscall(SYS_gettid));
	ck_assert_str_eq(seen.name, "weft-blocking");
	/* test_blocking_child.c has more about signals. */
	ck_assert_int_eq(sigismember(&seen.blocked, SIGINT), 0);
	ck_assert_int_eq(sigismember(&seen.blocked, SIGSEGV), 0);
	/* The thread of a job runs no task. */
	ck_assert_int_eq(seen.sleeps, -EPERM);
	ck_assert_int_eq(seen.blocks, -EPERM);
	ck_assert_int_eq(seen.scope, -EPERM);
	ck_assert_ptr_null(seen.runtime);
	/* The worker's own signal mask is unchanged. */
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &seen.blocked), 0);
	ck_assert_int_eq(sigismember(&seen.blocked, SIGALRM), 0);
	return 0;
}

POOL_TEST(wrong_calls_are_refused, 0, 0)
{
	struct weft_blocking_stats stats;

	ck_assert_int_eq(weft_blocking(NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_blocking_stats_get(NULL, &stats), -EINVAL);
	ck_assert_int_eq(weft_blocking_stats_get(weft_runtime_self(), NULL),
			 -EINVAL);
	ck_assert_uint_eq(pool_stats().threads, 0);
	return 0;
}

START_TEST(outside_of_a_task_it_is_refused)
{
	ck_assert_int_eq(weft_blocking(nothing_to_do, NULL), -EPERM);
}
END_TEST

/* The runtime has one worker, and the other task opens the gate. */
POOL_TEST(others_run_while_a_task_waits_for_its_job, 0, 0)
{
	struct gate gate = { 0 };
	int64_t r = 0;

	WEFT_SUPERVISE(all) {
		pass_start(all, &gate, NULL, &r);
		wait_until(weft__load(&gate.came, acquire) == 1);
		ck_assert_uint_eq(pool_stats().running, 1);
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 7);
	ck_assert_uint_eq(pool_stats().running, 0);
	return 0;
}

/* ---- Threads ------------------------------------------------------------ */

POOL_TEST(jobs_run_at_once_up_to_the_limit_of_threads, 8, 0)
{
	struct gate gate = { 0 };

	WEFT_SUPERVISE(all) {
		pass_start_many(all, 50, &gate, NULL);
		wait_until(pool_stats().queued == 42 &&
			   weft__load(&gate.came, acquire) == 8);
		ck_assert_uint_eq(pool_stats().threads, 8);
		gate_open(&gate);
	}
	ck_assert_uint_eq(weft__load(&gate.max_inside, relaxed), 8);
	ck_assert_uint_eq(weft__load(&gate.done, relaxed), 50);
	ck_assert_uint_eq(pool_stats().threads, 8);
	ck_assert_uint_eq(pool_stats().done, 50);
	return 0;
}

#ifndef WEFT_VALGRIND /* Valgrind allows at most 500 threads */
POOL_TEST(limit_is_512_by_default, 0, 0)
{
	struct gate gate = { 0 };

	WEFT_SUPERVISE(all) {
		pass_start_many(all, 600, &gate, NULL);
		wait_until(pool_stats().queued == 88 &&
			   weft__load(&gate.came, acquire) == 512);
		gate_open(&gate);
	}
	ck_assert_uint_eq(weft__load(&gate.max_inside, relaxed), 512);
	ck_assert_uint_eq(weft__load(&gate.done, relaxed), 600);
	return 0;
}
#endif

/* A thread counts as idle before the task learns that its job ended. */
POOL_TEST(one_job_after_the_other_needs_one_thread, 0, 0)
{
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(weft_blocking(nothing_to_do, NULL), 0);
	ck_assert_uint_eq(pool_stats().threads, 1);
	return 0;
}

static void fill_pool(int threads)
{
	struct gate gate = { 0 };

	WEFT_SUPERVISE(all) {
		pass_start_many(all, threads, &gate, NULL);
		wait_until(weft__load(&gate.came, acquire) ==
			   (unsigned)threads);
		gate_open(&gate);
	}
}

POOL_TEST(idle_threads_leave, 0, WEFT_MS(30))
{
	for (int i = 0; i < 3; i++) {
		fill_pool(6);
		wait_until(pool_stats().threads == 0);
		wait_until(threads_alive() == 0);
	}
	ck_assert_uint_eq(pool_stats().done, 18);
	return 0;
}

/* A stack and its guard are two mappings.  The C library keeps 40 MiB of
 * stacks, and an arena of two mappings for some of the threads. */
POOL_TEST(threads_that_left_keep_no_stack, 0, WEFT_MS(1))
{
	enum { ROUNDS = 40, KEPT = 120 };
	int before = 0;

	for (int i = 0; i < ROUNDS; i++) {
		if (i == 2)
			before = mappings();
		fill_pool(6);
		wait_until(pool_stats().threads == 0);
	}
	ck_assert_int_le(mappings(), before + KEPT);
	return 0;
}

/* If the threads were used in turn, each would be needed within its idle
 * time. */
POOL_TEST(threads_that_are_not_needed_leave_under_work, 0, WEFT_MS(300))
{
	weft_nsec by = weft_now() + WEFT_SEC(20);

	fill_pool(16);
	while (pool_stats().threads > 1) {
		ck_assert_int_eq(weft_blocking(nothing_to_do, NULL), 0);
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		ck_assert_msg(weft_now() < by, "%u threads are left",
			      pool_stats().threads);
	}
	return 0;
}

/* With an idle time near zero, threads exit while jobs are handed to them. */
POOL_TEST(no_job_is_lost_to_a_thread_that_leaves, 4, 1)
{
	for (int round = 0; round < 100; round++) {
		struct gate gate = { 0 };

		gate_open(&gate);
		WEFT_SUPERVISE(all)
			pass_start_many(all, 10, &gate, NULL);
		ck_assert_uint_eq(weft__load(&gate.done, relaxed), 10);
		ck_assert_uint_le(weft__load(&gate.max_inside, relaxed), 4);
	}
	return 0;
}

/* ---- Interruption ------------------------------------------------------- */

/* The pool has one thread, and it is busy. */
static void cancel_queued(bool by_deadline)
{
	struct gate gate = { 0 };
	int64_t results[3] = { 0 };

	WEFT_SUPERVISE(all) {
		struct weft_task task;

		pass_start(all, &gate, NULL, &results[0]);
		wait_until(weft__load(&gate.came, acquire) == 1);
		if (by_deadline) {
			WEFT_WITHIN(WEFT_MS(10))
				results[1] = weft_blocking(gate_pass, &gate);
		} else {
			task = pass_start(all, &gate, NULL, &results[1]);
			wait_until(pool_stats().queued == 1);
			ck_assert_int_eq(weft_cancel(task), 0);
			ck_assert_int_eq(weft_join(task, NULL), 0);
		}
		ck_assert_uint_eq(pool_stats().queued, 0);
		pass_start(all, &gate, NULL, &results[2]);
		gate_open(&gate);
	}
	ck_assert_int_eq(results[0], 7);
	ck_assert_int_eq(results[1], by_deadline ? -ETIMEDOUT : -ECANCELED);
	ck_assert_int_eq(results[2], 7);
	ck_assert_uint_eq(weft__load(&gate.came, relaxed), 2);
}

POOL_TEST(job_that_is_cancelled_in_its_queue_does_not_run, 1, 0)
{
	cancel_queued(false);
	return 0;
}

POOL_TEST(job_whose_deadline_passes_in_its_queue_does_not_run, 1, 0)
{
	cancel_queued(true);
	return 0;
}

struct late {
	struct gate gate;
	int64_t result, then;
};

static int64_t pass_and_sleep(void *arg)
{
	struct late *late = *(struct late **)arg;

	late->result = weft_blocking(gate_pass, &late->gate);
	late->then = weft_sleep(WEFT_SEC(3600));
	return 0;
}

POOL_TEST(job_that_runs_is_waited_for_and_then_the_cancellation_told, 0, 0)
{
	struct late late = { .result = 0 }, *pointer = &late;

	WEFT_SUPERVISE(all) {
		ck_assert_int_eq(WEFT_GO(all, pass_and_sleep, pointer), 0);
		wait_until(weft__load(&late.gate.came, acquire) == 1);
		weft_scope_cancel(all);
		for (int i = 0; i < 20; i++)
			ck_assert_int_eq(weft_yield(), 0);
		ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
		/* The job's arg still exists: the task has not ended. */
		ck_assert_uint_eq(weft_scope_count(all), 1);
		gate_open(&late.gate);
	}
	ck_assert_int_eq(late.result, 7);
	ck_assert_int_eq(late.then, -ECANCELED);
	return 0;
}

struct outlasting {
	struct gate gate;
	weft_nsec opens_ns;
};

static int64_t open_later(void *arg)
{
	struct outlasting *outlasting = *(struct outlasting **)arg;

	ck_assert_int_eq(weft_sleep_until(outlasting->opens_ns), 0);
	gate_open(&outlasting->gate);
	return 0;
}

/* Returns false if the job had not begun by its deadline. */
static bool outlasts(weft_nsec within_ns)
{
	struct outlasting it = { .opens_ns = weft_now() + within_ns +
					     WEFT_MS(50) };
	struct outlasting *pointer = &it;
	int64_t r = 0;

	WEFT_SUPERVISE(all) {
		ck_assert_int_eq(WEFT_GO(all, open_later, pointer), 0);
		WEFT_WITHIN(within_ns) {
			r = weft_blocking(gate_pass, &it.gate);
			ck_assert(r < 0 || weft_now() >= it.opens_ns);
			ck_assert_int_eq(weft_yield(), -ETIMEDOUT);
			/* The deadline has passed before the call: the job does
			 * not run. */
			ck_assert_int_eq(weft_blocking(gate_pass, &it.gate),
					 -ETIMEDOUT);
		}
	}
	ck_assert_int_eq(r, weft__load(&it.gate.came, relaxed) ? 7 :
								 -ETIMEDOUT);
	ck_assert_uint_le(weft__load(&it.gate.came, relaxed), 1);
	return r == 7;
}

POOL_TEST(job_that_runs_outlasts_a_deadline, 0, 0)
{
	weft_nsec within_ns = WEFT_MS(200);

	while (!outlasts(within_ns))
		within_ns *= 2;
	return 0;
}

/* ---- All together ------------------------------------------------------- */

enum { STORM_TASKS = 24, STORM_CALLS = 200, STORM_LANES = 3 };

static struct {
	struct weft_lane lanes[STORM_LANES];
	weft__atomic(unsigned) inside[STORM_LANES];
	weft__atomic(uint64_t) ran, returned, gave_up;
} storm;

struct storm_job {
	unsigned lane;
	long pause_ns;
	int64_t result;
};

static int64_t storm_job(void *arg)
{
	struct storm_job *job = arg;
	unsigned max = storm.lanes[job->lane].jobs_max;
	unsigned inside =
		weft__add(&storm.inside[job->lane], 1u, relaxed) + 1;

	ck_assert(!max || inside <= max);
	weft__add(&storm.ran, (uint64_t)1, relaxed);
	thread_pause_ns(job->pause_ns);
	weft__sub(&storm.inside[job->lane], 1u, relaxed);
	return job->result;
}

static void storm_call(uint32_t random)
{
	struct storm_job job = {
		.lane = random % STORM_LANES,
		.pause_ns = (long)(random >> 4) % 100000,
		.result = random,
	};
	int64_t r = 0;

	WEFT_WITHIN(random & 8 ? WEFT_SEC(60) : WEFT_US(random >> 20))
		r = weft_blocking_lane(&storm.lanes[job.lane], storm_job,
				       &job);
	if (r >= 0) {
		ck_assert_int_eq(r, job.result);
		weft__add(&storm.returned, (uint64_t)1, relaxed);
	} else {
		ck_assert_int_eq(r, -ETIMEDOUT);
		weft__add(&storm.gave_up, (uint64_t)1, relaxed);
	}
}

static int64_t storm_task(void *arg)
{
	uint32_t random = *(uint32_t *)arg;

	for (int i = 0; i < STORM_CALLS; i++) {
		random = random * 1664525u + 1013904223u;
		storm_call(random >> 1);
	}
	return 0;
}

/* Each job either returns its own result or did not run; the limits hold; all
 * threads exit. */
POOL_TEST(storm_of_jobs_and_deadlines_loses_none, 6, WEFT_US(200))
{
	memset(&storm, 0, sizeof(storm));
	storm.lanes[0].jobs_max = 1;
	storm.lanes[1].jobs_max = 3;
	WEFT_SUPERVISE(all)
		for (uint32_t i = 0; i < STORM_TASKS; i++)
			ck_assert_int_eq(WEFT_GO(all, storm_task, i), 0);
	ck_assert_uint_eq(weft__load(&storm.ran, relaxed),
			  weft__load(&storm.returned, relaxed));
	ck_assert_uint_eq(weft__load(&storm.returned, relaxed) +
				  weft__load(&storm.gave_up, relaxed),
			  STORM_TASKS * STORM_CALLS);
	ck_assert_uint_gt(weft__load(&storm.gave_up, relaxed), 0);
	ck_assert_uint_eq(pool_stats().queued + pool_stats().running, 0);
	wait_until(pool_stats().threads == 0);
	return 0;
}

static TCase *calls(void)
{
	TCase *tcase = tcase_create("calls");

	tcase_set_timeout(tcase, 30);
	io_add_test(tcase, function_runs_on_a_thread_beside_the_workers);
	io_add_test(tcase, wrong_calls_are_refused);
	tcase_add_test(tcase, outside_of_a_task_it_is_refused);
	io_add_test(tcase, others_run_while_a_task_waits_for_its_job);
	io_add_test(tcase, job_that_is_cancelled_in_its_queue_does_not_run);
	io_add_test(tcase,
		    job_whose_deadline_passes_in_its_queue_does_not_run);
	io_add_test(
		tcase,
		job_that_runs_is_waited_for_and_then_the_cancellation_told);
	io_add_test(tcase, job_that_runs_outlasts_a_deadline);
	io_add_test(tcase, storm_of_jobs_and_deadlines_loses_none);
	return tcase;
}

static TCase *threads(void)
{
	TCase *tcase = tcase_create("threads");

	tcase_set_timeout(tcase, 30);
	io_add_test(tcase, jobs_run_at_once_up_to_the_limit_of_threads);
#ifndef WEFT_VALGRIND
	io_add_test(tcase, limit_is_512_by_default);
#endif
	io_add_test(tcase, one_job_after_the_other_needs_one_thread);
	io_add_test(tcase, idle_threads_leave);
	io_add_test(tcase, threads_that_left_keep_no_stack);
	io_add_test(tcase, threads_that_are_not_needed_leave_under_work);
	io_add_test(tcase, no_job_is_lost_to_a_thread_that_leaves);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("blocking/blocking");

	suite_add_tcase(suite, calls());
	suite_add_tcase(suite, threads());
	return io_tests_run(suite);
}

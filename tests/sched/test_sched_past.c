/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/past: times that have passed, in calls of threads and in
 * options.  For calls of tasks see tests/timer/test_timer_past.c.
 */
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "tests/support/io_kit.h"
#include "tests/support/stderr_capture.h"

/* The length for the turn of a test. */
static weft_nsec passed(int i)
{
	return i ? WEFT_SEC(-2) : (weft_nsec)-1;
}

static struct weft_runtime *start(const struct weft_opts *opts)
{
	struct weft_runtime *runtime;

	ck_assert_int_eq(weft_start(opts, &runtime), 0);
	return runtime;
}

static int64_t wait_for_event(void *arg)
{
	int r = -1;

	WEFT_SHIELD
		r = weft_event_wait(*(struct weft_event **)arg);
	return r;
}

START_TEST(thread_does_not_wait_until_a_time_that_has_passed)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime = start(&opts);
	struct weft_event event = { 0 }, *at = &event;
	struct weft_task task;
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;

	task_opts.ret_task = &task;
	ck_assert_int_eq(weft_submit(runtime, wait_for_event, &at, sizeof(at),
				     &task_opts),
			 0);
	ck_assert_int_eq(weft_wait_until(runtime, task, passed(_i), NULL),
			 -ETIMEDOUT);
	weft_event_set(&event);
	ck_assert_int_eq(weft_wait_until(runtime, task, weft_now() + WEFT_NEVER,
					 NULL),
			 0);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

START_TEST(runtime_does_not_wait_for_tasks_any_more)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	static struct weft_event event;
	struct weft_event *at = &event;
	struct weft_runtime *runtime;

	opts.workers = 2;
	opts.shutdown_ns = passed(_i);
	runtime = start(&opts);
	ck_assert_int_eq(
		weft_submit(runtime, wait_for_event, &at, sizeof(at), NULL), 0);
	said_begin();
	ck_assert_int_eq(weft_stop(runtime), -ETIMEDOUT);
	ck_assert_ptr_nonnull(strstr(said_end(), "has not ended"));
	leave_memory();
}
END_TEST

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int64_t use_pool(void *arg)
{
	struct weft_blocking_stats stats;

	(void)arg;
	ck_assert_int_eq(weft_blocking(nothing, NULL), 0);
	do {
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		ck_assert_int_eq(weft_blocking_stats_get(weft_runtime_self(),
							 &stats),
				 0);
	} while (stats.threads);
	return 0;
}

START_TEST(idle_thread_of_the_pool_ends)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.blocking_idle_ns = passed(_i);
	ck_assert_int_eq(weft_run(use_pool, NULL, &opts), 0);
}
END_TEST

START_TEST(standstill_is_reported)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_event event = { 0 }, *at = &event;
	struct weft_runtime *runtime;
	char text[1 << 16];
	size_t have = 0;
	ssize_t n;

	said_begin();
	opts.stall_ns = passed(_i);
	runtime = start(&opts);
	ck_assert_int_eq(
		weft_submit(runtime, wait_for_event, &at, sizeof(at), NULL), 0);
	do {
		n = said_read(text + have, sizeof(text) - 1 - have);
		ck_assert_int_gt(n, 0);
		have += (size_t)n;
		text[have] = '\0';
	} while (!strstr(text, "no task can go on"));
	weft_event_set(&event);
	ck_assert_int_eq(weft_stop(runtime), 0);
	(void)said_end();
}
END_TEST

static Suite *past_suite(void)
{
	Suite *suite = suite_create("runtime/past");
	TCase *tc = tcase_create("past");

	tcase_add_loop_test(
		tc, thread_does_not_wait_until_a_time_that_has_passed, 0, 2);
	tcase_add_loop_test(tc, runtime_does_not_wait_for_tasks_any_more, 0, 2);
	tcase_add_loop_test(tc, idle_thread_of_the_pool_ends, 0, 2);
	tcase_add_loop_test(tc, standstill_is_reported, 0, 2);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return io_tests_run(past_suite());
}

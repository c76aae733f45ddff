/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/foreign: threads outside a runtime wait for a task with a time
 * limit, and cancel one task or all of them.
 */
#include <pthread.h>

#include "tests/support/io_kit.h"

static struct weft_runtime *start(unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	opts.workers = workers;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	return runtime;
}

static struct weft_task submit(struct weft_runtime *runtime, weft_fn fn,
			       void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.ret_task = &task;
	ck_assert_int_eq(weft_submit(runtime, fn, &arg, sizeof(arg), &opts), 0);
	return task;
}

/* ---- Waiting with a time limit ---------------------------------------- */

static int64_t when_set(void *arg)
{
	ck_assert_int_eq(weft_event_wait(*(struct weft_event **)arg), 0);
	return 7;
}

START_TEST(wait_ends_at_its_deadline)
{
	struct weft_runtime *runtime = start(1);
	struct weft_event event = { 0 };
	struct weft_task task = submit(runtime, when_set, &event);
	int64_t r = 0;

	for (int i = 0; i < 3; i++) {
		weft_nsec until_ns = weft_now() + WEFT_MS(5) * (unsigned)i;

		ck_assert_int_eq(weft_wait_until(runtime, task, until_ns, &r),
				 -ETIMEDOUT);
		ck_assert_uint_ge(weft_now(), until_ns);
		ck_assert_int_eq(r, 0);
	}
	weft_event_set(&event);
	ck_assert_int_eq(weft_wait_until(runtime, task,
					 weft_now() + WEFT_SEC(60), &r),
			 0);
	ck_assert_int_eq(r, 7);
	ck_assert_int_eq(weft_wait_until(runtime, task, 0, &r), -ESRCH);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

START_TEST(who_gave_up_may_detach)
{
	struct weft_runtime *runtime = start(1);
	struct weft_event event = { 0 };
	struct weft_task task = submit(runtime, when_set, &event);

	ck_assert_int_eq(weft_wait_until(runtime, task, 0, NULL), -ETIMEDOUT);
	ck_assert_int_eq(weft_detach(runtime, task), 0);
	ck_assert_int_eq(weft_wait_until(runtime, task, 0, NULL), -ESRCH);
	weft_event_set(&event);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

START_TEST(deadline_that_has_passed_looks)
{
	struct weft_runtime *runtime = start(1);
	struct weft_event event = { 0 };
	struct weft_task task = submit(runtime, when_set, &event);
	int64_t r = 0;

	weft_event_set(&event);
	while (weft_wait_until(runtime, task, 0, &r) == -ETIMEDOUT)
		sched_yield();
	ck_assert_int_eq(r, 7);
	ck_assert_int_eq(weft_wait_until(NULL, task, 0, &r), -EINVAL);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

static int64_t wait_for_itself(void *arg)
{
	(void)arg;
	return weft_wait_until(weft_runtime_self(), weft_self(), 0, NULL);
}

START_TEST(task_may_not_wait_so)
{
	struct weft_runtime *runtime = start(1);
	struct weft_task task = submit(runtime, wait_for_itself, NULL);
	int64_t r = 0;

	ck_assert_int_eq(weft_wait(runtime, task, &r), 0);
	ck_assert_int_eq(r, -EDEADLK);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* ---- Cancelling ------------------------------------------------------- */

static int64_t for_ever(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_NEVER);
}

START_TEST(thread_cancels_one_of_many)
{
	struct weft_runtime *runtime = start((unsigned)_i);
	struct weft_task tasks[3];
	int64_t r = 0;

	for (int i = 0; i < 3; i++)
		tasks[i] = submit(runtime, for_ever, NULL);
	ck_assert_int_eq(weft_cancel_in(runtime, tasks[1]), 0);
	ck_assert_int_eq(weft_wait(runtime, tasks[1], &r), 0);
	ck_assert_int_eq(r, -ECANCELED);
	ck_assert_int_eq(weft_cancel_in(runtime, tasks[1]), -ESRCH);
	ck_assert_int_eq(weft_cancel_in(NULL, tasks[0]), -EINVAL);
	ck_assert_int_eq(weft_cancel_in(runtime, (struct weft_task){ 0 }),
			 -ESRCH);
	for (int i = 0; i < 3; i += 2)
		ck_assert_int_eq(weft_wait_until(runtime, tasks[i],
						 weft_now() + WEFT_MS(2), &r),
				 -ETIMEDOUT);
	weft_cancel_all(runtime);
	for (int i = 0; i < 3; i += 2) {
		ck_assert_int_eq(weft_wait(runtime, tasks[i], &r), 0);
		ck_assert_int_eq(r, -ECANCELED);
	}
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* The task that is cancelled here is the last one of its runtime.  The runtime
 * ends and is freed while the thread may still be inside its call. */
static struct {
	struct weft_runtime *runtime;
	struct weft_task task;
	weft__atomic(uint32_t) known;
	bool all;
} last;

static int64_t last_task(void *arg)
{
	last.runtime = weft_runtime_self();
	last.task = weft_self();
	weft__store(&last.known, 1u, release);
	return for_ever(arg);
}

static void *cancel_last(void *arg)
{
	(void)arg;
	while (!weft__load(&last.known, acquire))
		sched_yield();
	if (last.all)
		weft_cancel_all(last.runtime);
	else
		ck_assert_int_eq(weft_cancel_in(last.runtime, last.task), 0);
	return NULL;
}

START_TEST(runtime_ends_while_its_last_is_cancelled)
{
	last.all = _i;
	for (int i = 0; i < 300; i++) {
		struct weft_opts opts = WEFT_OPTS_INIT;
		pthread_t thread;

		opts.workers = 1;
		weft__store(&last.known, 0u, relaxed);
		ck_assert_int_eq(
			pthread_create(&thread, NULL, cancel_last, NULL), 0);
		ck_assert_int_eq(weft_run(last_task, NULL, &opts), -ECANCELED);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
	}
}
END_TEST

static int64_t cancel_elsewhere(void *arg)
{
	(void)arg;
	return weft_cancel_in(last.runtime, last.task);
}

START_TEST(task_cancels_one_of_another_runtime)
{
	struct weft_runtime *first = start(1), *second = start(1);
	int64_t r = 0;

	last.runtime = second;
	last.task = submit(second, for_ever, NULL);
	ck_assert_int_eq(weft_wait(first, submit(first, cancel_elsewhere, NULL),
				   &r),
			 0);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(weft_wait(second, last.task, &r), 0);
	ck_assert_int_eq(r, -ECANCELED);
	ck_assert_int_eq(weft_stop(first), 0);
	ck_assert_int_eq(weft_stop(second), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task/foreign");
	TCase *tc = tcase_create("threads");

	tcase_add_test(tc, wait_ends_at_its_deadline);
	tcase_add_test(tc, who_gave_up_may_detach);
	tcase_add_test(tc, deadline_that_has_passed_looks);
	tcase_add_test(tc, task_may_not_wait_so);
	tcase_add_loop_test(tc, thread_cancels_one_of_many, 1, 3);
	tcase_add_loop_test(tc, runtime_ends_while_its_last_is_cancelled, 0,
			    2);
	tcase_add_test(tc, task_cancels_one_of_another_runtime);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

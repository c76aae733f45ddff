/* SPDX-License-Identifier: MIT */
/*
 * Suite task/handles: what threads that are none of a runtime's own may do
 * with its tasks (ledger V60).
 *
 * A thread submits a task and gets a handle.  The tests use each handle once,
 * twice, too late and in the wrong place, and look at the error.
 */
#include <pthread.h>

#include "tests/support/io_kit.h"

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int64_t twice(void *arg)
{
	return *(int64_t *)arg * 2;
}

static int64_t slow_twice(void *arg)
{
	ck_assert_int_eq(weft_sleep(WEFT_US(500)), 0);
	return twice(arg);
}

static struct weft_task submit(struct weft_runtime *runtime, weft_fn fn,
			       int64_t value)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.ret_task = &task;
	ck_assert_int_eq(weft_submit(runtime, fn, &value, sizeof(value),
				     &opts),
			 0);
	ck_assert_uint_ne(task.id, 0);
	return task;
}

static struct weft_runtime *start(unsigned workers, unsigned tasks_max)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	opts.workers = workers;
	opts.tasks_max = tasks_max;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	return runtime;
}

START_TEST(wait_gives_the_result_once)
{
	struct weft_runtime *runtime = start(_i & 2 ? 2 : 1, 0);
	int64_t r = 0;

	for (int64_t i = 1; i <= 200; i++) {
		struct weft_task task =
			submit(runtime, _i & 1 ? slow_twice : twice, i);

		if (i % 3 == 0)
			thread_pause_ns(1000000); /* by now it has ended */
		ck_assert_int_eq(weft_wait(runtime, task, &r), 0);
		ck_assert_int_eq(r, i * 2);
		ck_assert_int_eq(weft_wait(runtime, task, &r), -ESRCH);
		ck_assert_int_eq(weft_detach(runtime, task), -ESRCH);
	}
	ck_assert_int_eq(weft_wait(runtime, submit(runtime, twice, 4), NULL),
			 0);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

static struct rivals {
	struct weft_runtime *runtime;
	struct weft_task task;
	struct weft_event refused;
	weft__atomic(unsigned) waited;
} rivals;

static int64_t until_refused(void *arg)
{
	ck_assert_int_eq(weft_event_wait(&rivals.refused), 0);
	return twice(arg);
}

static void *wait_with_others(void *arg)
{
	int64_t result = 0;
	int r = weft_wait(rivals.runtime, rivals.task, &result);

	(void)arg;
	if (r < 0) {
		ck_assert_int_eq(r, -EBUSY);
		ck_assert_int_eq(weft_detach(rivals.runtime, rivals.task),
				 -EBUSY);
		weft_event_set(&rivals.refused);
	} else {
		ck_assert_int_eq(result, 14);
		weft__add(&rivals.waited, 1u, relaxed);
	}
	return NULL;
}

/* The task goes on only after one of the threads was refused. */
START_TEST(one_thread_waits_for_a_task)
{
	pthread_t threads[2];

	rivals.runtime = start(1, 0);
	for (unsigned round = 1; round <= 50; round++) {
		weft_event_clear(&rivals.refused);
		rivals.task = submit(rivals.runtime, until_refused, 7);
		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL,
							wait_with_others, NULL),
					 0);
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		ck_assert_uint_eq(weft__load(&rivals.waited, relaxed), round);
	}
	ck_assert_int_eq(weft_stop(rivals.runtime), 0);
}
END_TEST

static weft__atomic(unsigned) counted;

static int64_t count_slowly(void *arg)
{
	int64_t value = *(int64_t *)arg;

	if (value % 2)
		(void)weft_sleep(WEFT_US(100)); /* the last may be cancelled */
	weft__add(&counted, 1u, relaxed);
	return 0;
}

enum { DETACHED = 6000, RECORDS = 64 };

/* Handles of running and of ended tasks: no record is lost, and no worker keeps
 * one to itself. */
START_TEST(detached_tasks_run_and_are_freed)
{
	struct weft_runtime *runtime = start(_i ? 2 : 1, RECORDS);

	for (int64_t i = 0; i < DETACHED; i++) {
		struct weft_task task = submit(runtime, count_slowly, i);

		if (i % 8 == 7)
			thread_pause_ns(300000); /* usually it has ended */
		ck_assert_int_eq(weft_detach(runtime, task), 0);
		ck_assert_int_eq(weft_detach(runtime, task), -ESRCH);
		ck_assert_int_eq(weft_wait(runtime, task, NULL), -ESRCH);
		while (i % 32 == 31 &&
		       weft__load(&counted, relaxed) != (unsigned)i + 1)
			thread_pause_ns(100000);
	}
	ck_assert_int_eq(weft_stop(runtime), 0);
	ck_assert_uint_eq(weft__load(&counted, relaxed), DETACHED);
}
END_TEST

static struct {
	struct weft_task child;
	weft__atomic(bool) begun, seen;
} lent;

static int64_t end_when_seen(void *arg)
{
	(void)arg;
	while (!weft__load(&lent.seen, acquire))
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	return 11;
}

static int64_t lend_handle(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int64_t r = 0;

	(void)arg;
	opts.ret_task = &lent.child;
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go_opts(scope, end_when_seen, NULL, 0,
					      &opts),
				 0);
		weft__store(&lent.begun, true, release);
		ck_assert_int_eq(weft_join(lent.child, &r), 0);
	}
	return r;
}

/* Only the owner may join this task, and it would wait for ever. */
START_TEST(handle_of_a_scope_is_none_to_a_thread)
{
	struct weft_runtime *runtime = start(_i ? 2 : 1, 0);
	struct weft_task task = submit(runtime, lend_handle, 0);
	int64_t r = 0;

	while (!weft__load(&lent.begun, acquire))
		thread_pause_ns(1000000);
	ck_assert_int_eq(weft_detach(runtime, lent.child), -ESRCH);
	weft__store(&lent.seen, true, release);
	ck_assert_int_eq(weft_wait(runtime, lent.child, NULL), -ESRCH);
	ck_assert_int_eq(weft_wait(runtime, task, &r), 0);
	ck_assert_int_eq(r, 11);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

enum { THREADS = 8, EACH = 300 };

static void *submit_and_wait(void *arg)
{
	struct weft_runtime *runtime = arg;
	int64_t sum = 0;

	for (int64_t i = 0; i < EACH; i++) {
		int64_t r = 0;
		struct weft_task task =
			submit(runtime, i % 7 ? twice : slow_twice, i);

		if (i % 5 == 0) {
			ck_assert_int_eq(weft_detach(runtime, task), 0);
			r = i * 2;
		} else {
			ck_assert_int_eq(weft_wait(runtime, task, &r), 0);
		}
		sum += r;
	}
	return (void *)(intptr_t)sum;
}

START_TEST(many_threads_wait_for_their_own)
{
	struct weft_runtime *runtime = start(_i ? 2 : 1, 0);
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
						submit_and_wait, runtime),
				 0);
	for (int i = 0; i < THREADS; i++) {
		void *sum;

		pthread_join(threads[i], &sum);
		ck_assert_int_eq((intptr_t)sum, EACH * (EACH - 1));
	}
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* ---- Mistakes ---------------------------------------------------------- */

static const struct weft_task no_tasks[] = {
	{ 0 }, { 1 }, { UINT64_MAX }, { 5000 }, { UINT64_C(77) << 32 },
};

START_TEST(mistakes_of_a_thread_are_errors)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_opts wrong = WEFT_OPTS_INIT;
	struct weft_runtime *runtime = start(2, 0);

	for (size_t i = 0; i < sizeof(no_tasks) / sizeof(*no_tasks); i++) {
		ck_assert_int_eq(weft_wait(runtime, no_tasks[i], NULL),
				 -ESRCH);
		ck_assert_int_eq(weft_detach(runtime, no_tasks[i]), -ESRCH);
	}
	ck_assert_int_eq(weft_wait(NULL, no_tasks[0], NULL), -EINVAL);
	ck_assert_int_eq(weft_detach(NULL, no_tasks[0]), -EINVAL);
	ck_assert_int_eq(weft_submit(NULL, nothing, NULL, 0, NULL), -EINVAL);
	weft_cancel_all(NULL);
	ck_assert_int_eq(weft_submit(runtime, NULL, NULL, 0, NULL), -EINVAL);
	ck_assert_int_eq(weft_submit(runtime, nothing, NULL, 8, NULL),
			 -EINVAL);
	opts.flags = 1u << 9;
	ck_assert_int_eq(weft_submit(runtime, nothing, NULL, 0, &opts),
			 -EINVAL);
	wrong.workers = 4097;
	ck_assert_int_eq(weft_start(&wrong, &runtime), -EINVAL);
	ck_assert_int_eq(weft_start(NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_stop(NULL), -EINVAL);
	ck_assert_int_eq(weft_run(NULL, NULL, NULL), -EINVAL);
	ck_assert_ptr_null(weft_runtime_self());
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* Inside a task, no call may block the worker, or end the task's own
 * runtime. */
static int64_t mistake_inside(void *arg)
{
	struct weft_runtime *runtime = weft_runtime_self();
	struct weft_task task = submit(runtime, twice, 1);

	ck_assert_int_eq(weft_wait(runtime, task, NULL), -EDEADLK);
	ck_assert_int_eq(weft_detach(runtime, task), 0);
	ck_assert_int_eq(weft_stop(runtime), -EDEADLK);
	ck_assert_int_eq(weft_run(nothing, NULL, NULL), -EDEADLK);
	weft__store((weft__atomic(uint64_t) *)arg, weft_self().id, release);
	return weft_sleep(WEFT_MS(20));
}

static struct weft_runtime *its_runtime;

/* weft_run() lends its own thread to the runtime, so weft_stop() refuses it. */
static void *stop_what_runs(void *arg)
{
	ck_assert_int_eq(weft_stop(arg), -EINVAL);
	return NULL;
}

static int64_t be_stopped(void *arg)
{
	pthread_t thread;

	(void)arg;
	ck_assert_int_eq(pthread_create(&thread, NULL, stop_what_runs,
					weft_runtime_self()),
			 0);
	pthread_join(thread, NULL);
	return weft_sleep(WEFT_MS(1));
}

START_TEST(runtime_of_run_is_not_to_be_stopped)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	for (opts.workers = 1; opts.workers <= 2; opts.workers++)
		ck_assert_int_eq(weft_run(be_stopped, NULL, &opts), 0);
}
END_TEST

static void *wait_wrongly(void *arg)
{
	/* The main task was started without a handle, so no thread has one. */
	struct weft_task main_task = { *(uint64_t *)arg };

	ck_assert_int_eq(weft_wait(its_runtime, main_task, NULL), -ESRCH);
	ck_assert_int_eq(weft_detach(its_runtime, main_task), -ESRCH);
	return NULL;
}

static int64_t task_of_another(void *arg)
{
	pthread_t thread;
	weft__atomic(uint64_t) id = 0;
	int64_t r = mistake_inside(&id);

	(void)arg;
	its_runtime = weft_runtime_self();
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_wrongly, &id), 0);
	pthread_join(thread, NULL);
	return r;
}

START_TEST(mistakes_of_a_task_are_errors)
{
	io_run(task_of_another, NULL, _i ? 2 : 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("task/handles");
	TCase *handles = tcase_create("handles");
	TCase *mistakes = tcase_create("mistakes");

	tcase_set_timeout(handles, 30);
	tcase_add_loop_test(handles, wait_gives_the_result_once, 0, 4);
	tcase_add_test(handles, one_thread_waits_for_a_task);
	tcase_add_loop_test(handles, detached_tasks_run_and_are_freed, 0, 2);
	tcase_add_loop_test(handles, handle_of_a_scope_is_none_to_a_thread, 0,
			    2);
	tcase_add_loop_test(handles, many_threads_wait_for_their_own, 0, 2);
	tcase_add_test(mistakes, mistakes_of_a_thread_are_errors);
	tcase_add_test(mistakes, runtime_of_run_is_not_to_be_stopped);
	tcase_add_loop_test(mistakes, mistakes_of_a_task_are_errors, 0, 2);
	suite_add_tcase(suite, handles);
	suite_add_tcase(suite, mistakes);
	return io_tests_run(suite);
}

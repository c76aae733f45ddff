/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/stop: how a runtime ends (ledger L20).  Tasks that wait are
 * cancelled, nothing comes in any more, and tasks that go on are given up.
 */
#include <pthread.h>
#include <sched.h>

#include "runtime/sched/worker.h"
#include "tests/support/io_kit.h"
#include "tests/support/stderr_capture.h"

/* ---- Tasks that still wait are cancelled ------------------------------- */

enum { KINDS = 6 };

static struct {
	int fds[2];
	weft__atomic(unsigned) begun, ended;
	weft__atomic(int64_t) results[KINDS];
} left;

static int64_t sleep_for_long(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(3600));
}

static int64_t join_for_long(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task child;
	int64_t r = 0;

	opts.ret_task = &child;
	WEFT_SUPERVISE(scope) {
		/* If the stop came first, no task is started. */
		r = weft_go_opts(scope, sleep_for_long, NULL, 0, &opts);
		if (r == 0)
			r = weft_join(child, NULL);
	}
	return r;
}

static int64_t read_within(void)
{
	int64_t r = 0;
	char byte;

	WEFT_WITHIN(WEFT_SEC(3600))
		r = weft_read(left.fds[0], &byte, 1);
	return r;
}

static int64_t yield_for_ever(void)
{
	int r;

	do
		r = weft_yield();
	while (r == 0);
	return r;
}

static int64_t wait_in(unsigned kind)
{
	char byte;

	switch (kind) {
	case 0:
		return weft_read(left.fds[0], &byte, 1);
	case 1:
		return weft_sleep(WEFT_SEC(3600));
	case 2:
		return weft_poll(left.fds[0], POLLIN);
	case 3:
		return read_within();
	case 4:
		return join_for_long();
	default:
		return yield_for_ever();
	}
}

static int64_t waiter(void *arg)
{
	unsigned kind = *(unsigned *)arg;

	weft__add(&left.begun, 1u, relaxed);
	weft__store(&left.results[kind], wait_in(kind), relaxed);
	weft__add(&left.ended, 1u, relaxed);
	return 0;
}

static void left_begin(struct weft_runtime *runtime)
{
	memset(&left, 0, sizeof(left));
	socket_pair(left.fds);
	for (unsigned kind = 0; kind < KINDS; kind++)
		ck_assert_int_eq(weft_submit(runtime, waiter, &kind,
					     sizeof(kind), NULL),
				 0);
}

/* All have ended, and each wait returned that it was cancelled. */
static void left_end(void)
{
	ck_assert_uint_eq(weft__load(&left.ended, relaxed), KINDS);
	for (unsigned kind = 0; kind < KINDS; kind++)
		ck_assert_int_eq(weft__load(&left.results[kind], relaxed),
				 -ECANCELED);
	close(left.fds[0]);
	close(left.fds[1]);
}

static int64_t leave_waiters(void *arg)
{
	left_begin(weft_runtime_self());
	wait_until(weft__load(&left.begun, relaxed) == KINDS);
	if (*(int *)arg)
		ck_assert_int_eq(weft_sleep(WEFT_MS(20)), 0);
	return 7;
}

/* L20: submitted tasks that wait for I/O or for time do not leak. */
START_TEST(submitted_tasks_that_wait_are_cancelled_at_the_end)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int settles = _i & 1;

	opts.workers = _i & 2 ? 2 : 1;
	ck_assert_int_eq(weft_run(leave_waiters, &settles, &opts), 7);
	left_end();
}
END_TEST

static void spin_until_begun(void)
{
	for (int i = 0; weft__load(&left.begun, relaxed) < KINDS; i++) {
		ck_assert_int_lt(i, 20000);
		thread_pause_ns(1000000);
	}
}

START_TEST(stop_cancels_what_waits)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	opts.workers = _i & 2 ? 2 : 1;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	left_begin(runtime);
	if (_i & 1)
		spin_until_begun();
	ck_assert_int_eq(weft_stop(runtime), 0);
	left_end();
}
END_TEST

/* The same without a stop: the runtime goes on. */
START_TEST(cancel_all_reaches_every_task)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	opts.workers = _i ? 2 : 1;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	left_begin(runtime);
	spin_until_begun();
	weft_cancel_all(runtime);
	for (int i = 0; weft__load(&left.ended, relaxed) < KINDS; i++) {
		ck_assert_int_lt(i, 20000);
		thread_pause_ns(1000000);
	}
	left_end();
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* ---- No more tasks come in --------------------------------------------- */

static struct {
	struct weft_runtime *runtime;
	weft__atomic(bool) ending, refused;
} late;

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The task's wait is shielded, so the stop waits for it. */
static int64_t submit_late(void *arg)
{
	(void)arg;
	WEFT_SHIELD
		while (!weft__load(&late.refused, acquire))
			ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	ck_assert_int_eq(weft_submit(weft_runtime_self(), nothing, NULL, 0,
				     NULL),
			 -ESHUTDOWN);
	return 0;
}

/* The body of a thread: submits tasks until it is refused. */
static void *submit_on(void *arg)
{
	int r;

	do {
		r = weft_submit(late.runtime, nothing, NULL, 0, NULL);
		if (r == 0)
			ck_assert(!weft__load(&late.refused, relaxed));
		thread_pause_ns(50000);
	} while (r == 0);
	ck_assert_int_eq(r, -ESHUTDOWN);
	ck_assert(weft__load(&late.ending, acquire));
	weft__store(&late.refused, true, release);
	return arg;
}

static int64_t end_beside_submitters(void *arg)
{
	pthread_t *thread = arg;

	late.runtime = weft_runtime_self();
	ck_assert_int_eq(weft_submit(weft_runtime_self(), submit_late, NULL, 0,
				     NULL),
			 0);
	ck_assert_int_eq(pthread_create(thread, NULL, submit_on, NULL), 0);
	ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
	weft__store(&late.ending, true, release);
	return 0;
}

START_TEST(nothing_is_submitted_to_a_runtime_that_ends)
{
	pthread_t thread;

	io_run(end_beside_submitters, &thread, _i ? 2 : 1);
	pthread_join(thread, NULL);
}
END_TEST

/* ---- Threads that wait -------------------------------------------------- */

enum { WAITING_THREADS = 4 };

static struct {
	struct weft_runtime *runtime;
	struct weft_task tasks[WAITING_THREADS];
} awaited;

/* It comes to run when no other thread does, and so late. */
static void *wait_in_thread(void *arg)
{
	const struct sched_param none = { 0 };
	int64_t result = 0;

	ck_assert_int_eq(pthread_setschedparam(pthread_self(), SCHED_IDLE,
					       &none),
			 0);
	ck_assert_int_eq(weft_wait(awaited.runtime, *(struct weft_task *)arg,
				   &result),
			 0);
	ck_assert_int_eq(result, -ECANCELED);
	return NULL;
}

static void stop_beside_waiters(void)
{
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;
	struct weft_opts opts = WEFT_OPTS_INIT;
	pthread_t threads[WAITING_THREADS];

	memset(&awaited, 0, sizeof(awaited));
	opts.workers = 1;
	ck_assert_int_eq(weft_start(&opts, &awaited.runtime), 0);
	for (int i = 0; i < WAITING_THREADS; i++) {
		task_opts.ret_task = &awaited.tasks[i];
		ck_assert_int_eq(weft_submit(awaited.runtime, sleep_for_long,
					     NULL, 0, &task_opts),
				 0);
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
						wait_in_thread,
						&awaited.tasks[i]),
				 0);
	}
	/* relaxed: a thread that has a reference may come to wait later. */
	while (weft__load(&awaited.runtime->refs, relaxed) < WAITING_THREADS)
		thread_pause_ns(100000);
	thread_pause_ns(1000000); /* by now all threads wait, most often */
	ck_assert_int_eq(weft_stop(awaited.runtime), 0);
	for (int i = 0; i < WAITING_THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* The runtime is not freed before the waiting threads have their results. */
START_TEST(threads_that_wait_are_let_go)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET((unsigned)sched_getcpu(), &first);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(first), &first), 0);
	for (int i = 0; i < 100; i++)
		stop_beside_waiters();
}
END_TEST

/* ---- The shutdown time ------------------------------------------------- */

/* On a busy machine too, tasks that only have to notice it end meanwhile. */
#define SHUTDOWN_NS WEFT_SEC(1)

static weft__atomic(unsigned) stubborn_begun;

static _Noreturn int64_t stubborn(void *arg)
{
	(void)arg;
	weft__add(&stubborn_begun, 1u, relaxed);
	for (;;)
		WEFT_SHIELD
			weft_sleep(WEFT_SEC(3600));
}

/* Stays off worker 0, which measures the time: submits another from there. */
static int64_t computes(void *arg)
{
	if (weft__worker_self()->index == 0) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

		opts.name = "digger";
		ck_assert_int_eq(weft_submit(weft_runtime_self(), computes,
					     NULL, 0, &opts),
				 0);
		thread_pause_ns(10000000);
		return weft_yield();
	}
	(void)arg;
	weft__add(&stubborn_begun, 1u, relaxed);
	for (;;)
		thread_pause_ns(10000000); /* no pause for the runtime */
}

static int64_t obedient(void *arg)
{
	return sleep_for_long(arg);
}

static int submit_named(struct weft_runtime *runtime, weft_fn fn,
			const char *name)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = name;
	return weft_submit(runtime, fn, NULL, 0, &opts);
}

static int64_t leave_stubborn(void *arg)
{
	struct weft_runtime *runtime = weft_runtime_self();

	(void)arg;
	ck_assert_int_eq(submit_named(runtime, stubborn, "mule"), 0);
	ck_assert_int_eq(submit_named(runtime, stubborn, NULL), 0);
	ck_assert_int_eq(submit_named(runtime, computes, "digger"), 0);
	ck_assert_int_eq(submit_named(runtime, obedient, "lamb"), 0);
	wait_until(weft__load(&stubborn_begun, relaxed) == 3);
	return 5;
}

/* Three tasks are left, one of which runs; the fourth has ended. */
static void expect_survivors(const char *text, int64_t result,
			     weft_nsec took_ns)
{
	ck_assert_int_eq(result, -ETIMEDOUT);
	ck_assert_uint_ge(took_ns, SHUTDOWN_NS);
	ck_assert_uint_lt(took_ns, WEFT_SEC(10));
	ck_assert_msg(strstr(text, "task 'mule'") && strstr(text, "waits") &&
			      strstr(text, "task 'unnamed'") &&
			      strstr(text, "task 'digger'") &&
			      strstr(text, "runs") && !strstr(text, "lamb"),
		      "it said: %s", text);
}

START_TEST(survivors_of_run_are_named)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	weft_nsec start = weft_now();
	int64_t r;

	opts.workers = 2;
	opts.shutdown_ns = SHUTDOWN_NS;
	said_begin();
	r = weft_run(leave_stubborn, NULL, &opts);
	expect_survivors(said_end(), r, weft_now() - start);
	leave_memory();
}
END_TEST

START_TEST(survivors_of_stop_are_named)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	weft_nsec start;
	int r;

	opts.workers = 2;
	opts.shutdown_ns = SHUTDOWN_NS;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	ck_assert_int_eq(submit_named(runtime, stubborn, "mule"), 0);
	ck_assert_int_eq(submit_named(runtime, stubborn, NULL), 0);
	ck_assert_int_eq(submit_named(runtime, computes, "digger"), 0);
	ck_assert_int_eq(submit_named(runtime, obedient, "lamb"), 0);
	while (weft__load(&stubborn_begun, relaxed) < 3)
		thread_pause_ns(1000000);
	start = weft_now();
	said_begin();
	r = weft_stop(runtime);
	expect_survivors(said_end(), r, weft_now() - start);
	leave_memory();
}
END_TEST

/* ---- Threads that wait for a task given up ----------------------------- */

enum { WAITED = 3 }; /* no thread waits for the last one until the end */
static struct {
	struct weft_runtime *runtime;
	struct weft_task tasks[WAITED];
	pthread_t threads[WAITED];
	int results[WAITED];
} waited;

static void *wait_for_one(void *arg)
{
	unsigned i = (unsigned)((int *)arg - waited.results);

	waited.results[i] = weft_wait(waited.runtime, waited.tasks[i], NULL);
	return NULL;
}

static void waiters_begin(struct weft_runtime *runtime)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	waited.runtime = runtime;
	for (unsigned i = 0; i < WAITED; i++) {
		opts.ret_task = &waited.tasks[i];
		ck_assert_int_eq(weft_submit(runtime, stubborn, NULL, 0, &opts),
				 0);
	}
	for (unsigned i = 0; i < WAITED - 1; i++)
		ck_assert_int_eq(pthread_create(&waited.threads[i], NULL,
						wait_for_one,
						&waited.results[i]),
				 0);
}

static void waiters_end(void)
{
	for (unsigned i = 0; i < WAITED - 1; i++)
		ck_assert_int_eq(pthread_join(waited.threads[i], NULL), 0);
	(void)wait_for_one(&waited.results[WAITED - 1]);
	for (unsigned i = 0; i < WAITED; i++)
		ck_assert_int_eq(waited.results[i], -ETIMEDOUT);
}

static int64_t leave_waited(void *arg)
{
	(void)arg;
	waiters_begin(weft_runtime_self());
	wait_until(weft__load(&stubborn_begun, relaxed) == WAITED);
	return 0;
}

START_TEST(who_waits_for_one_that_is_given_up_is_let_go)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	char id[64];

	opts.workers = _i & 2 ? 2 : 1;
	opts.shutdown_ns = SHUTDOWN_NS;
	said_begin();
	if (_i & 1) {
		ck_assert_int_eq(weft_start(&opts, &runtime), 0);
		waiters_begin(runtime);
		ck_assert_int_eq(weft_stop(runtime), -ETIMEDOUT);
	} else {
		ck_assert_int_eq(weft_run(leave_waited, NULL, &opts),
				 -ETIMEDOUT);
	}
	/* The message shows the ids of the tasks' handles. */
	snprintf(id, sizeof(id), "'unnamed' (%llx)",
		 (unsigned long long)waited.tasks[1].id);
	ck_assert(strstr(said_end(), id));
	waiters_end();
	leave_memory();
}
END_TEST

static _Noreturn int64_t compute(void *arg)
{
	(void)arg;
	weft__add(&stubborn_begun, 1u, relaxed);
	for (;;)
		thread_pause_ns(10000000); /* no pause for the runtime */
}

/* All workers compute: the thread that stops the runtime measures the time. */
START_TEST(stop_is_in_time_though_all_workers_compute)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	const char *text;
	weft_nsec start;
	int r;

	opts.workers = _i ? 2 : 1;
	opts.shutdown_ns = SHUTDOWN_NS;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	for (unsigned i = 0; i < opts.workers; i++)
		ck_assert_int_eq(submit_named(runtime, compute, "digger"), 0);
	while (weft__load(&stubborn_begun, relaxed) < opts.workers)
		thread_pause_ns(1000000);
	start = weft_now();
	said_begin();
	r = weft_stop(runtime);
	text = said_end();
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_uint_ge(weft_now() - start, SHUTDOWN_NS);
	ck_assert_uint_lt(weft_now() - start, WEFT_SEC(10));
	ck_assert_msg(strstr(text, "task 'digger'") && strstr(text, "runs"),
		      "it said: %s", text);
	leave_memory();
}
END_TEST

static int64_t clean_up(void *arg)
{
	(void)arg;
	if (weft_sleep(WEFT_SEC(3600)) != -ECANCELED)
		return -EPROTO;
	WEFT_SHIELD
		ck_assert_int_eq(weft_sleep(WEFT_MS(50)), 0);
	weft__store(&late.refused, true, relaxed);
	return 0;
}

static int64_t leave_one_that_cleans_up(void *arg)
{
	(void)arg;
	ck_assert_int_eq(submit_named(weft_runtime_self(), clean_up, "maid"),
			 0);
	return 3;
}

/* A task that needs less time is waited for, and no task is named. */
START_TEST(clean_up_within_the_time_is_waited_for)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int64_t r;

	opts.workers = _i ? 2 : 1;
	opts.shutdown_ns = WEFT_SEC(20);
	said_begin();
	r = weft_run(leave_one_that_cleans_up, NULL, &opts);
	ck_assert_str_eq(said_end(), "");
	ck_assert_int_eq(r, 3);
	ck_assert(weft__load(&late.refused, relaxed));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched/stop");
	TCase *end = tcase_create("ending");

	tcase_set_timeout(end, 30);
	tcase_add_loop_test(end,
		submitted_tasks_that_wait_are_cancelled_at_the_end, 0, 4);
	tcase_add_loop_test(end, stop_cancels_what_waits, 0, 4);
	tcase_add_loop_test(end, cancel_all_reaches_every_task, 0, 2);
	tcase_add_loop_test(end, nothing_is_submitted_to_a_runtime_that_ends,
			    0, 2);
	tcase_add_test(end, survivors_of_run_are_named);
	tcase_add_test(end, threads_that_wait_are_let_go);
	tcase_add_test(end, survivors_of_stop_are_named);
	tcase_add_loop_test(end,
			    who_waits_for_one_that_is_given_up_is_let_go, 0, 4);
	tcase_add_loop_test(end, stop_is_in_time_though_all_workers_compute, 0,
			    2);
	tcase_add_loop_test(end, clean_up_within_the_time_is_waited_for, 0, 2);
	suite_add_tcase(suite, end);
	return io_tests_run(suite);
}

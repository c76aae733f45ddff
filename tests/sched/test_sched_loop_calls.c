/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/loop_calls: whose call a call of <weft/loop.h> is, and how a
 * runtime inside a loop ends (G04, G05).
 */
#include <pthread.h>

#include "tests/support/child_kit.h"
#include "tests/support/loop_kit.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_calls.h"
#include "tests/support/refuse_threads.h"
#include "tests/support/stderr_capture.h"

static int64_t count_up(void *arg)
{
	++**(int **)arg;
	return 0;
}

static int64_t yields_for_ever(void *arg)
{
	int *over = *(int **)arg;

	while (weft_yield() == 0)
		;
	*over = 1;
	return 0;
}

static int64_t sleeps_for_long(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(3600));
}

/* ---- Whose call it is --------------------------------------------------- */

static int64_t calls_inside(void *arg)
{
	struct weft_runtime *self = weft_runtime_self(), *other = NULL;
	int *over = *(int **)arg;

	ck_assert_int_eq(weft_turn(self, NULL), -EDEADLK);
	ck_assert_int_eq(weft_stop(self), -EDEADLK);
	ck_assert_int_eq(weft_attach(NULL, &other), -EDEADLK);
	*over = 1;
	return 0;
}

static void *call_elsewhere(void *arg)
{
	struct weft_runtime *runtime = arg;

	ck_assert_int_eq(weft_turn(runtime, NULL), -EPERM);
	ck_assert_int_eq(weft_loop_fd(runtime), -EPERM);
	ck_assert_int_eq(weft_stop(runtime), -EPERM);
	return NULL;
}

static int64_t call_in_child(void *arg)
{
	struct weft_runtime *runtime = arg;

	NEED(weft_turn(runtime, NULL) == -EPERM);
	NEED(weft_loop_fd(runtime) == -EPERM);
	NEED(weft_stop(runtime) == -EPERM);
	return 0;
}

START_TEST(call_that_is_not_the_loops_is_refused)
{
	struct weft_opts two = WEFT_OPTS_INIT, none = { 0 };
	struct weft_runtime *runtime = loop_begin(), *started = NULL;
	pthread_t thread;
	int over = 0;

	two.workers = 2;
	ck_assert_int_eq(weft_attach(&two, &started), -EINVAL);
	ck_assert_int_eq(weft_attach(&none, &started), -EINVAL);
	ck_assert_int_eq(weft_attach(NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_turn(NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_loop_fd(NULL), -EINVAL);
	ck_assert_int_eq(weft_start(NULL, &started), 0);
	ck_assert_int_eq(weft_turn(started, NULL), -EINVAL);
	ck_assert_int_eq(weft_loop_fd(started), -EINVAL);
	ck_assert_int_eq(weft_stop(started), 0);
	loop_submit(runtime, calls_inside, &over);
	loop_until(runtime, over);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_elsewhere, runtime),
			 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	child_run(call_in_child, runtime);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* ---- Without io_uring, threads, signals ---------------------------------- */

static int64_t attach_without_io_uring(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime = NULL;
	unsigned call = SYS_io_uring_setup;

	(void)arg;
	opts.engine = WEFT_ENGINE_URING;
	NEED(unsetenv("WEFT_ENGINE") == 0);
	NEED(refuse_calls(&call, 1, EPERM));
	NEED(weft_attach(&opts, &runtime) == -ENOSYS && !runtime);
	return 0;
}

static int64_t attach_without_threads(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime = NULL;

	(void)arg;
	refuse_threads();
	/* The watchdog has a thread. */
	opts.stall_ns = WEFT_SEC(60);
	NEED(weft_attach(&opts, &runtime) == -EAGAIN && !runtime);
	opts.stall_ns = 0;
	NEED(weft_attach(&opts, &runtime) == 0);
	return weft_stop(runtime);
}

START_TEST(lack_of_io_uring_or_of_threads_is_an_error)
{
	child_run(attach_without_io_uring, NULL);
	child_run(attach_without_threads, NULL);
}
END_TEST

enum { BELLS = 16 };

START_TEST(too_many_signals_for_dumps_are_ebusy)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtimes[BELLS], *one_more = NULL;

	opts.dump_signal = SIGUSR2;
	for (int i = 0; i < BELLS; i++)
		ck_assert_int_eq(weft_attach(&opts, &runtimes[i]), 0);
	ck_assert_int_eq(weft_attach(&opts, &one_more), -EBUSY);
	ck_assert_int_eq(weft_start(&opts, &one_more), -EBUSY);
	ck_assert_ptr_null(one_more);
	ck_assert_int_eq(weft_stop(runtimes[0]), 0);
	ck_assert_int_eq(weft_attach(&opts, &runtimes[0]), 0);
	for (int i = 0; i < BELLS; i++)
		ck_assert_int_eq(weft_stop(runtimes[i]), 0);
}
END_TEST

/* ---- Its tasks, and its end ---------------------------------------------- */

/* It would wait for itself. */
START_TEST(loops_thread_does_not_wait_for_a_task)
{
	struct weft_runtime *runtime = loop_begin();
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int ran = 0, *at = &ran;
	int64_t r = 1;

	opts.ret_task = &task;
	ck_assert_int_eq(weft_submit(runtime, count_up, &at, sizeof(at), &opts),
			 0);
	ck_assert_int_eq(weft_wait(runtime, task, &r), -EDEADLK);
	ck_assert_int_eq(weft_wait_until(runtime, task,
					 weft_now() + WEFT_SEC(60), &r),
			 -EDEADLK);
	ck_assert_int_eq(weft_wait_until(runtime, task, 0, &r), -ETIMEDOUT);
	loop_until(runtime, ran);
	ck_assert_int_eq(weft_wait(runtime, task, &r), 0);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* Between turns the thread is not the worker's. */
START_TEST(thread_has_several_runtimes)
{
	struct weft_runtime *one = loop_begin(), *two = loop_begin();
	int ran_one = 0, ran_two = 0, *at = &ran_one;
	struct pollfd fds[2] = {
		{ weft_loop_fd(one), POLLIN, 0 },
		{ weft_loop_fd(two), POLLIN, 0 },
	};

	loop_settle(one);
	loop_settle(two);
	ck_assert_ptr_null(weft_runtime_self());
	loop_submit(two, count_up, &ran_two);
	ck_assert_int_eq(poll(fds, 2, -1), 1);
	ck_assert(fds[1].revents);
	loop_until(two, ran_two);
	ck_assert_int_eq(weft_run(count_up, &at, NULL), 0);
	ck_assert_int_eq(ran_one, 1);
	loop_submit(one, count_up, &ran_one);
	loop_until(one, ran_one == 2);
	ck_assert_int_eq(weft_stop(one), 0);
	ck_assert_int_eq(weft_stop(two), 0);
}
END_TEST

/* ---- The end ------------------------------------------------------------ */

static int64_t waits_for_long(void *arg)
{
	int *over = *(int **)arg;

	*over = (int)weft_sleep(WEFT_SEC(3600));
	/* Not done in the turn in which it is cancelled. */
	WEFT_SHIELD (void)
		weft_sleep(WEFT_MS(3));
	++*over;
	return 0;
}

START_TEST(stop_ends_the_tasks_that_are_left)
{
	struct weft_runtime *runtime = loop_begin();
	int slept = 0, yielded = 0, never_ran = 0;

	loop_submit(runtime, waits_for_long, &slept);
	loop_settle(runtime);
	loop_submit(runtime, yields_for_ever, &yielded);
	if (_i)
		ck_assert_int_eq(weft_turn(runtime, NULL), 1);
	loop_submit(runtime, waits_for_long, &never_ran);
	ck_assert_int_eq(weft_stop(runtime), 0);
	ck_assert_int_eq(slept, -ECANCELED + 1);
	ck_assert_int_eq(yielded, 1);
	ck_assert_int_eq(never_ran, -ECANCELED + 1);
}
END_TEST

START_TEST(runtime_that_never_turned_stops)
{
	struct weft_runtime *runtime = loop_begin();

	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

static int64_t is_stubborn(void *arg)
{
	(void)arg;
	while (weft_yield() != -EPERM)
		;
	return 0;
}

/* The thread keeps the time while a task goes on. */
START_TEST(survivors_of_the_end_are_given_up)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_task_opts named = WEFT_TASK_OPTS_INIT;
	struct weft_runtime *runtime = NULL;

	opts.shutdown_ns = WEFT_MS(20);
	named.name = "stubborn";
	ck_assert_int_eq(weft_attach(&opts, &runtime), 0);
	ck_assert_int_eq(weft_submit(runtime, is_stubborn, NULL, 0, &named), 0);
	ck_assert_int_eq(weft_turn(runtime, NULL), 1);
	said_begin();
	ck_assert_int_eq(weft_stop(runtime), -ETIMEDOUT);
	ck_assert_ptr_nonnull(strstr(said_end(), "task 'stubborn'"));
	leave_memory();
}
END_TEST

START_TEST(dump_between_turns_has_the_tasks)
{
	struct weft_task_opts named = WEFT_TASK_OPTS_INIT;
	struct weft_runtime *runtime = loop_begin();
	char text[16384] = { 0 };
	FILE *file = tmpfile();

	ck_assert_ptr_nonnull(file);
	named.name = "sleeper";
	ck_assert_int_eq(weft_submit(runtime, sleeps_for_long, NULL, 0, &named),
			 0);
	loop_settle(runtime);
	ck_assert_int_eq(weft_dump(runtime, fileno(file)), 0);
	ck_assert_int_gt(pread(fileno(file), text, sizeof(text) - 1, 0), 0);
	ck_assert_ptr_nonnull(strstr(text, "sleeper"));
	fclose(file);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

static weft__atomic(bool) computes, dumped;

static int64_t computes_until_dumped(void *arg)
{
	(void)arg;
	weft__store(&computes, true, release);
	while (!weft__load(&dumped, acquire))
		;
	return 0;
}

static void *dump_what_computes(void *arg)
{
	static char text[16384];
	struct weft_runtime *runtime = arg;
	FILE *file = tmpfile();

	while (!weft__load(&computes, acquire))
		sched_yield();
	if (!file || weft_dump(runtime, fileno(file)) < 0 ||
	    pread(fileno(file), text, sizeof(text) - 1, 0) <= 0)
		text[0] = '\0';
	weft__store(&dumped, true, release);
	if (file)
		fclose(file);
	return text;
}

START_TEST(dump_in_a_turn_names_the_task_that_runs)
{
	struct weft_task_opts named = WEFT_TASK_OPTS_INIT;
	struct weft_runtime *runtime = loop_begin();
	const char *line;
	pthread_t thread;
	void *text;

	named.name = "computer";
	ck_assert_int_eq(weft_submit(runtime, computes_until_dumped, NULL, 0,
				     &named), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, dump_what_computes,
					runtime), 0);
	loop_until(runtime, weft__load(&dumped, acquire));
	ck_assert_int_eq(pthread_join(thread, &text), 0);
	line = strstr(text, "worker 0:");
	ck_assert_msg(line, "%s", (char *)text);
	ck_assert_msg(strncmp(line, "worker 0: parked", 16) != 0, "%s", line);
	loop_settle(runtime);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

static bool has_altstack(void)
{
	stack_t now;

	ck_assert_int_eq(sigaltstack(NULL, &now), 0);
	return !(now.ss_flags & SS_DISABLE);
}

/* A stack on which an overflow is reported, or one of the program's own. */
START_TEST(signal_stack_is_left_to_its_other_users)
{
	static char memory[65536];
	stack_t none = { .ss_flags = SS_DISABLE }, now;
	stack_t own = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct weft_runtime *first, *second;

	/* A sanitizer's. */
	if (has_altstack())
		ck_assert_int_eq(sigaltstack(&none, NULL), 0);
	first = loop_begin();
	second = loop_begin();
	ck_assert_int_eq(weft_stop(first), 0);
	ck_assert(has_altstack());
	ck_assert_int_eq(sigaltstack(&own, NULL), 0);
	ck_assert_int_eq(weft_stop(second), 0);
	ck_assert_int_eq(sigaltstack(NULL, &now), 0);
	ck_assert_ptr_eq(now.ss_sp, memory);
	ck_assert_int_eq(sigaltstack(&none, NULL), 0);
	first = loop_begin();
	ck_assert(has_altstack());
	ck_assert_int_eq(weft_stop(first), 0);
	ck_assert(!has_altstack());
}
END_TEST

/* ---- Without descriptors ------------------------------------------------ */

/* As many as are left to open are not enough, up to some number. */
START_TEST(attach_without_descriptors_leaves_none_open)
{
	struct weft_runtime *runtime = loop_begin();
	struct rlimit old;
	int before, more = 0, r;

	/* By now all is open that is opened once in a process. */
	ck_assert_int_eq(weft_stop(runtime), 0);
	before = fds_open();
	do {
		old = limit_set(RLIMIT_NOFILE,
				(rlim_t)before + (rlim_t)more++);
		r = weft_attach(NULL, &runtime);
		limit_reset(RLIMIT_NOFILE, old);
		ck_assert(r == 0 || r == -EMFILE);
		if (r < 0)
			ck_assert_int_eq(fds_open(), before);
	} while (r < 0);
	ck_assert_int_ge(more, 2);
	ck_assert_int_eq(weft_stop(runtime), 0);
	ck_assert_int_eq(fds_open(), before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched/loop_calls");
	TCase *calls = tcase_create("calls");

	tcase_set_timeout(calls, 60);
	tcase_add_test(calls, call_that_is_not_the_loops_is_refused);
	if (test_needs(HAS_FILTERS && test_can(child_may_refuse),
		       "lack_of_io_uring_or_of_threads_is_an_error",
		       NEEDS_REFUSED_CALLS))
		tcase_add_test(calls,
			       lack_of_io_uring_or_of_threads_is_an_error);
	tcase_add_test(calls, too_many_signals_for_dumps_are_ebusy);
	tcase_add_test(calls, loops_thread_does_not_wait_for_a_task);
	tcase_add_test(calls, thread_has_several_runtimes);
	tcase_add_loop_test(calls, stop_ends_the_tasks_that_are_left, 0, 2);
	tcase_add_test(calls, runtime_that_never_turned_stops);
	tcase_add_test(calls, survivors_of_the_end_are_given_up);
	tcase_add_test(calls, dump_between_turns_has_the_tasks);
	tcase_add_test(calls, dump_in_a_turn_names_the_task_that_runs);
	tcase_add_test(calls, signal_stack_is_left_to_its_other_users);
	tcase_add_test(calls, attach_without_descriptors_leaves_none_open);
	suite_add_tcase(suite, calls);
	return io_tests_run(suite);
}

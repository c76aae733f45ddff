/* SPDX-License-Identifier: MIT */
/*
 * Suite stack/signal_end: SIGSEGV and SIGBUS when runtimes have ended, and in
 * those that come later.
 *
 * When the last runtime has ended the program's action is in force again.  A
 * handler that was set over weft's stays, and may pass signals on to it.
 */
#include "tests/support/fall.h"
#include "tests/support/signal_scene.h"

/* ---- The end of the runtimes --------------------------------------------- */

static struct sigaction action_now(void)
{
	struct sigaction now;

	ck_assert_int_eq(sigaction(number, NULL, &now), 0);
	return now;
}

START_TEST(action_comes_back_with_the_last_runtime)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	number = numbers[_i];
	/* Both together fit where 64 KiB may be locked. */
	opts.workers = 1;
	opts.ring_entries = 2;
	has_handler();
	for (int i = 0; i < 3; i++) {
		struct weft_runtime *first, *second;

		ck_assert_int_eq(weft_start(&opts, &first), 0);
		ck_assert_int_eq(weft_start(&opts, &second), 0);
		ck_assert_int_eq(weft_stop(first), 0);
		ck_assert(action_now().sa_handler != handle);
		ck_assert_int_eq(weft_stop(second), 0);
		ck_assert(action_now().sa_handler == handle);
	}
}
END_TEST

START_TEST(runtime_that_could_not_start_gives_the_action_back)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	number = numbers[_i];
	has_handler();
	opts.dump_path = "/no/such/directory/for a socket";
	ck_assert_int_lt(weft_start(&opts, &runtime), 0);
	ck_assert(action_now().sa_handler == handle);
}
END_TEST

/* Another library's, which passes all signals on. */
static struct sigaction passes_to;
static int nested;

static void pass_on(int signal_number, siginfo_t *info, void *context)
{
	NEED(nested < 3);
	nested = nested + 1;
	if (passes_to.sa_flags & SA_SIGINFO)
		passes_to.sa_sigaction(signal_number, info, context);
	else
		passes_to.sa_handler(signal_number);
	nested = nested - 1;
}

static int64_t set_over(void *arg)
{
	struct sigaction action = { .sa_sigaction = pass_on,
				    .sa_flags = SA_SIGINFO };

	(void)arg;
	sigaction(number, &action, &passes_to);
	raise(number);
	NEED(calls == 1);
	return 0;
}

static void handler_stays(void)
{
	struct sigaction now;

	for (int i = 2; i <= 4; i++) {
		NEED(sigaction(number, NULL, &now) == 0);
		NEED(now.sa_sigaction == pass_on);
		raise(number);
		NEED(calls == i);
		/* The handler of a further runtime is not set over it: each
		 * would pass signals on to the other. */
		NEED(weft_run(nothing, NULL, NULL) == 0);
	}
	/* The library gives weft's back, which goes with the next runtime. */
	sigaction(number, &passes_to, NULL);
	NEED(weft_run(nothing, NULL, NULL) == 0);
	NEED(sigaction(number, NULL, &now) == 0);
	NEED(now.sa_handler == handle);
}

START_TEST(handler_set_over_it_stays_and_may_pass_signals_on)
{
	struct scene scene = { has_handler, set_over, handler_stays };

	number = numbers[_i];
	expect_end(&scene);
}
END_TEST

static int64_t fall_deeply(void *arg)
{
	(void)arg;
	return fall(1 << 20);
}

static int64_t start_falling(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	opts.name = "icarus";
	WEFT_SUPERVISE(scope)
		NEED(weft_go_opts(scope, fall_deeply, NULL, 0, &opts) == 0);
	return 0;
}

/* The handler is in force in each runtime, also of a process that was forked
 * meanwhile. */
static void fall_in_child(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		is_default();
		_exit((int)weft_run(start_falling, NULL, NULL));
	}
	NEED(waitpid(child, &status, 0) == child);
	_exit(WIFSIGNALED(status) ? 0 : 1);
}

static int64_t fork_within(void *arg)
{
	(void)arg;
	fall_in_child();
	return 0;
}

START_TEST(overflow_is_named_in_each_runtime)
{
	struct scene after = { NULL, nothing, fall_in_child };
	struct scene within = { NULL, fork_within, NULL };
	const struct scene *scenes[] = { &after, &within };

	number = SIGSEGV;
	for (int i = 0; i < 2; i++) {
		struct death death =
			death_of(play, (void *)(uintptr_t)scenes[i]);

		ck_assert(WIFEXITED(death.status) &&
			  WEXITSTATUS(death.status) == 0);
		ck_assert_msg(strstr(death.text,
				     "stack overflow in task 'icarus'"),
			      "it said: %s", death.text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stack/signal_end");
	TCase *tcase = tcase_create("ends");

	if (!test_needs(TEST_HAS_SIGNALS, "stack/signal_end",
			"signals of the kernel's"))
		return 77;
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, action_comes_back_with_the_last_runtime, 0,
			    NUMBERS);
	tcase_add_loop_test(
		tcase, runtime_that_could_not_start_gives_the_action_back, 0,
		NUMBERS);
	tcase_add_loop_test(tcase,
			    handler_set_over_it_stays_and_may_pass_signals_on,
			    0, NUMBERS);
	if (test_needs(!WITH_TSAN, "overflow_is_named_in_each_runtime",
		       "a sanitizer that knows threads of a forked child"))
		tcase_add_test(tcase, overflow_is_named_in_each_runtime);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}

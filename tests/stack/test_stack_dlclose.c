/* SPDX-License-Identifier: MIT */
/*
 * Suite stack/dlclose: a plug-in that uses weft is loaded, runs, and is
 * unloaded.  The process has its own actions of signals then, and can fork; and
 * a handler that another library has set over weft's may still call it.
 *
 * WEFT_LIBRARY names the shared library, which the program is not linked to.
 */
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

enum { HANGS_S = 50 };

/* ---- The plug-in --------------------------------------------------------- */

static void *load(void)
{
	void *library = dlopen(getenv("WEFT_LIBRARY"), RTLD_NOW | RTLD_LOCAL);

	ck_assert_msg(library, "%s", dlerror());
	return library;
}

/* Its functions, by name: nothing here is linked to the library. */
static int64_t (*run)(weft_fn, void *, const struct weft_opts *);
static int (*sleep_for)(weft_nsec);
static int64_t (*block)(weft_fn, void *);

static int64_t job(void *arg)
{
	(void)arg;
	return 3;
}

static int64_t work(void *arg)
{
	if (arg)
		((void (*)(void))(uintptr_t)arg)();
	return sleep_for(WEFT_MS(2)) == 0 ? block(job, NULL) : -1;
}

/* Loads it, runs, calls `within` in a task, and unloads it. */
static void use(void (*within)(void))
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	void *library = load();

	*(void **)&run = dlsym(library, "weft_run");
	*(void **)&sleep_for = dlsym(library, "weft_sleep");
	*(void **)&block = dlsym(library, "weft_blocking");
	opts.workers = 2;
	ck_assert_int_eq(run(work, (void *)(uintptr_t)within, &opts), 3);
	ck_assert_int_eq(dlclose(library), 0);
}

/* ---- The program --------------------------------------------------------- */

static void crash_handler(int number)
{
	(void)number;
	_exit(33);
}

static void *thread(void *arg)
{
	return arg;
}

static void expect_threads_and_children(void)
{
	pthread_t made;
	pid_t child;
	int status;

	ck_assert_int_eq(pthread_create(&made, NULL, thread, NULL), 0);
	ck_assert_int_eq(pthread_join(made, NULL), 0);
	child = fork();
	if (child == 0)
		_exit(7);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void fault_now(void)
{
	alarm(HANGS_S);
	/* To the process, as kill(1) does. */
	kill(getpid(), SIGSEGV);
	_exit(1);
}

static void expect_crash_handler(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		fault_now();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 33,
		      "status %#x", (unsigned)status);
}

START_TEST(handlers_of_the_program_are_in_force_after_dlclose)
{
	struct sigaction now;

	signal(SIGSEGV, crash_handler);
	for (int i = 0; i < 3; i++) {
		use(NULL);
		expect_threads_and_children();
		sigaction(SIGSEGV, NULL, &now);
		ck_assert(now.sa_handler == crash_handler);
		expect_crash_handler();
	}
}
END_TEST

static struct sigaction passes_to;

static void pass_on(int number, siginfo_t *info, void *context)
{
	passes_to.sa_sigaction(number, info, context);
}

static void set_over(void)
{
	struct sigaction action = { .sa_sigaction = pass_on,
				    .sa_flags = SA_SIGINFO };

	ck_assert_int_eq(sigaction(SIGSEGV, &action, &passes_to), 0);
	ck_assert(passes_to.sa_flags & SA_SIGINFO);
}

START_TEST(handler_set_over_it_may_pass_signals_on_after_dlclose)
{
	struct sigaction now;

	signal(SIGSEGV, crash_handler);
	use(set_over);
	sigaction(SIGSEGV, NULL, &now);
	ck_assert(now.sa_sigaction == pass_on);
	expect_crash_handler();
	use(NULL);
	expect_crash_handler();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stack/dlclose");
	TCase *tcase = tcase_create("dlclose");
	SRunner *runner;
	int failed;

	if (!getenv("WEFT_LIBRARY")) {
		printf("skipped: needs WEFT_LIBRARY\n");
		return 77;
	}
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase,
		       handlers_of_the_program_are_in_force_after_dlclose);
	tcase_add_test(tcase,
		       handler_set_over_it_may_pass_signals_on_after_dlclose);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

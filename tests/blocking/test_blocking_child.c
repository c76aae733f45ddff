/* SPDX-License-Identifier: MIT */
/*
 * Suite blocking/child: what a child process inherits.
 *
 * A child that a task or a job starts has the signal mask that the thread had
 * that started the runtime, and the program's own actions of signals.
 */
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/support/blocking_scene.h"
#include "tests/support/needs.h"

extern char **environ;

/* ---- The signals of a process ------------------------------------------- */

struct sets {
	uint64_t blocked, ignored;
};

/* 32 and 33 belong to the C library, which has posix_spawn(3) ignore them. */
#define OF_THE_PROGRAM (~((uint64_t)3 << 31))

static struct sets sets_of(pid_t pid)
{
	struct sets sets = { UINT64_MAX, UINT64_MAX };
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "SigBlk:", 7) == 0)
			sets.blocked = strtoull(line + 7, NULL, 16);
		if (strncmp(line, "SigIgn:", 7) == 0)
			sets.ignored = strtoull(line + 7, NULL, 16) &
				       OF_THE_PROGRAM;
	}
	fclose(file);
	return sets;
}

static void expect_sets(struct sets is, struct sets want)
{
	ck_assert_msg(is.blocked == want.blocked, "blocked %#llx, not %#llx",
		      (unsigned long long)is.blocked,
		      (unsigned long long)want.blocked);
	ck_assert_msg(is.ignored == want.ignored, "ignored %#llx, not %#llx",
		      (unsigned long long)is.ignored,
		      (unsigned long long)want.ignored);
}

/* ---- The program -------------------------------------------------------- */

/* Of the thread that starts the runtime. */
static struct sets program;
static struct sigaction actions[NSIG];

static void handle(int number)
{
	(void)number;
}

/* One signal is blocked, some are ignored, and one has a handler. */
static void program_begin(void)
{
	static const int ignores[] = { SIGSEGV, SIGURG, SIGUSR2 };
	sigset_t set;

	for (size_t i = 0; i < sizeof(ignores) / sizeof(ignores[0]); i++)
		signal(ignores[i], SIG_IGN);
	signal(SIGBUS, handle);
	/* The test runner has a handler for it, which ends the group. */
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &set, NULL), 0);
	program = sets_of(getpid());
	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, NULL, &actions[i]);
}

/* The first signal whose action is not the program's; 0: none. */
static int changed_action(void)
{
	struct sigaction now;

	for (int i = 1; i < NSIG; i++)
		if (sigaction(i, NULL, &now) == 0 &&
		    now.sa_handler != actions[i].sa_handler)
			return i;
	return 0;
}

static int64_t spawn_one(void *arg)
{
	char *argv[] = { "sleep", "50", NULL };
	int status;
	pid_t pid;

	(void)arg;
	ck_assert_int_eq(posix_spawnp(&pid, "sleep", NULL, NULL, argv, environ),
			 0);
	expect_sets(sets_of(pid), program);
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	return 0;
}

/* The child does not execute another program. */
static int64_t fork_one(void *arg)
{
	pid_t pid = fork();
	int status;

	(void)arg;
	if (pid == 0) {
		struct sets sets = sets_of(getpid());

		if (sets.blocked != program.blocked)
			_exit(100);
		_exit(changed_action());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	return 0;
}

static int64_t start_children(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(spawn_one(NULL), 0);
		ck_assert_int_eq(fork_one(NULL), 0);
		ck_assert_int_eq(weft_blocking(spawn_one, NULL), 0);
		ck_assert_int_eq(weft_blocking(fork_one, NULL), 0);
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	}
	return 0;
}

/* Its mask, and those that are ignored. */
START_TEST(child_has_the_signals_of_the_program)
{
	program_begin();
	io_run(start_children, NULL, (unsigned)_i);
	expect_sets(sets_of(getpid()), program);
	ck_assert_int_eq(changed_action(), 0);
}
END_TEST

/* A child that executes no other program has no handler of weft's: it would
 * report to the parent. */
static int64_t fork_some(void *arg)
{
	(void)arg;
	ck_assert_int_eq(fork_one(NULL), 0);
	ck_assert_int_eq(weft_blocking(fork_one, NULL), 0);
	return 0;
}

START_TEST(forked_child_does_not_have_the_handler_of_dump_signal)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	program_begin();
	opts.workers = (unsigned)_i;
	opts.dump_signal = SIGUSR2;
	ck_assert_int_eq(io_run_opts(fork_some, NULL, &opts), 0);
	ck_assert_int_eq(changed_action(), 0);
}
END_TEST

/* A mask that a task has set on its worker is not the program's: the pool makes
 * its threads without it. */
static int64_t start_children_from_deaf_worker(void *arg)
{
	sigset_t all, before;

	(void)arg;
	sigfillset(&all);
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
	ck_assert_int_eq(weft_blocking(spawn_one, NULL), 0);
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	return 0;
}

START_TEST(mask_of_a_worker_is_not_passed_to_jobs)
{
	program_begin();
	io_run(start_children_from_deaf_worker, NULL, 1);
}
END_TEST

/* ---- Signals of jobs ----------------------------------------------------- */

static weft__atomic(int) handled;

static void count_signal(int number)
{
	(void)number;
	weft__add(&handled, 1, relaxed);
}

static int64_t signal_itself(void *arg)
{
	(void)arg;
	ck_assert_int_eq(pthread_kill(pthread_self(), SIGALRM), 0);
	return weft__load(&handled, relaxed);
}

/* Without SA_RESTART. */
static int64_t disturb_jobs(void *arg)
{
	struct sigaction action = { .sa_handler = count_signal };
	struct itimerval storm = { { 0, 300 }, { 0, 300 } }, calm = { 0 };

	(void)arg;
	ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
	ck_assert_int_ge(weft_blocking(signal_itself, NULL), 1);
	setitimer(ITIMER_REAL, &storm, NULL);
	for (int i = 0; i < 300; i++)
		ck_assert_int_eq(weft_blocking(nothing_to_do, NULL), 0);
	setitimer(ITIMER_REAL, &calm, NULL);
	return 0;
}

START_TEST(handlers_of_the_program_run_on_threads_of_jobs)
{
	io_run(disturb_jobs, NULL, (unsigned)_i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("blocking/child");
	TCase *tcase = tcase_create("children");

	if (!test_needs(TEST_HAS_SIGNALS, "blocking/child",
			"signals of the kernel's"))
		return 77;
	tcase_set_timeout(tcase, 30);
	tcase_add_loop_test(tcase, child_has_the_signals_of_the_program, 1, 3);
	tcase_add_loop_test(
		tcase, forked_child_does_not_have_the_handler_of_dump_signal, 1,
		3);
	tcase_add_test(tcase, mask_of_a_worker_is_not_passed_to_jobs);
	tcase_add_loop_test(tcase,
			    handlers_of_the_program_run_on_threads_of_jobs, 1,
			    3);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}

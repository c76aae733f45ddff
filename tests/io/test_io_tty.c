/* SPDX-License-Identifier: MIT */
/*
 * A job in the background that reads its terminal is stopped (SIGTTIN).  Its
 * read goes on when it is in the foreground again.
 *
 * The processes: the test holds the terminal's other side; a child leads the
 * session, as a shell does; its child is the job, which runs weft.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "tests/support/io_kit.h"
#include "tests/support/need.h"
#include "tests/support/needs.h"

static const char line_of_job[] = "for the job\n";
static const char line_of_shell[] = "for the shell\n";

enum { HANGS_S = 50 };

/* ---- The job ------------------------------------------------------------- */

struct waiter {
	WEFT_FUTURE_STATE;
	int fd;
};

static int64_t await_input(void *state)
{
	struct waiter *w = state;
	int r;

	WEFT_FUTURE_BEGIN(w);
	WEFT_AWAIT_AS(w, r, weft_await_ready(w->fd, POLLIN));
	WEFT_FUTURE_END(w);
	return r;
}

static int64_t read_line(void *arg)
{
	int fd = *(int *)arg;
	char text[64] = "";
	ssize_t n = weft_read(fd, text, sizeof(text));

	if (n != (ssize_t)strlen(line_of_job) || strcmp(text, line_of_job))
		fprintf(stderr, "the job reads %zd '%s'\n", n, text);
	return n == (ssize_t)strlen(line_of_job) ? 0 : 1;
}

/* A future waits beside it, and must not disturb. */
static int64_t read_beside_a_future(void *arg)
{
	struct waiter w = { .fd = *(int *)arg };
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int64_t r = 1;

	opts.flags = WEFT_FUTURE;
	WEFT_SUPERVISE(scope) {
		NEED(weft_go_opts(scope, await_input, &w, sizeof(w), &opts) ==
		     0);
		r = read_line(arg);
		weft_scope_cancel(scope);
	}
	return r;
}

static void job(int terminal, unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	NEED(setpgid(0, 0) == 0);
	_exit(weft_run(read_beside_a_future, &terminal, &opts) == 0 ?
		      EXIT_SUCCESS :
		      EXIT_FAILURE);
}

/* ---- The shell ----------------------------------------------------------- */

/* Leads a session, in the foreground of the terminal. */
static int session_begin(const char *name)
{
	int terminal;

	alarm(HANGS_S);
	signal(SIGTTIN, SIG_DFL);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGHUP, SIG_DFL);
	NEED(setsid() > 0);
	terminal = open(name, O_RDWR | O_CLOEXEC);
	NEED(terminal >= 0);
	NEED(ioctl(terminal, TIOCSCTTY, 0) == 0);
	NEED(tcsetpgrp(terminal, getpgrp()) == 0);
	return terminal;
}

static void shell(const char *name, int master, unsigned workers)
{
	char text[64] = "";
	int status = 0, terminal = session_begin(name);
	pid_t child;

	child = fork();
	NEED(child >= 0);
	if (child == 0)
		job(terminal, workers);
	/* The read stops the job when there is input, if not before. */
	NEED(write(master, line_of_shell, strlen(line_of_shell)) ==
	     (ssize_t)strlen(line_of_shell));
	NEED(waitpid(child, &status, WUNTRACED) == child);
	NEED(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTIN);
	NEED(read(terminal, text, sizeof(text)) ==
	     (ssize_t)strlen(line_of_shell));
	NEED(tcsetpgrp(terminal, child) == 0);
	NEED(kill(-child, SIGCONT) == 0);
	NEED(write(master, line_of_job, strlen(line_of_job)) ==
	     (ssize_t)strlen(line_of_job));
	NEED(waitpid(child, &status, 0) == child);
	NEED(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	_exit(EXIT_SUCCESS);
}

/* ---- Tests --------------------------------------------------------------- */

static int terminal_make(char *ret_name, size_t bytes)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 &&
	    ptsname_r(master, ret_name, bytes) == 0)
		return master;
	if (master >= 0)
		close(master);
	return -1;
}

START_TEST(read_goes_on_when_the_job_is_in_the_foreground_again)
{
	char name[64];
	int status = -1, master = terminal_make(name, sizeof(name));
	pid_t child;

	if (!test_needs(master >= 0,
			"read_goes_on_when_the_job_is_in_the_foreground_again",
			"a pseudo-terminal"))
		return;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		shell(name, master, _i ? 2 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	close(master);
}
END_TEST

/* ---- A mode that is restored too late ------------------------------------ */

static void raw_job(int terminal, int talk)
{
	char byte = 'r';

	NEED(setpgid(0, 0) == 0);
	NEED(tcsetpgrp(terminal, getpgrp()) == 0);
	signal(SIGTTOU, SIG_DFL);
	NEED(weft_terminal_raw(terminal) == 0);
	NEED(write(talk, &byte, 1) == 1);
	NEED(read(talk, &byte, 1) == 1);
	NEED(weft_terminal_restore(terminal) == 0);
	NEED(weft_terminal_restore(terminal) == -EBADF);
	_exit(EXIT_SUCCESS);
}

/* Takes the terminal back, and sets a mode of its own. */
static void shell_of_raw_job(const char *name)
{
	int status = 0, terminal = session_begin(name), talk[2];
	struct termios own, now;
	pid_t child;
	char byte;

	NEED(tcgetattr(terminal, &own) == 0);
	own.c_lflag ^= TOSTOP;
	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) == 0);
	child = fork();
	NEED(child >= 0);
	if (child == 0)
		raw_job(terminal, talk[1]);
	NEED(read(talk[0], &byte, 1) == 1);
	NEED(tcsetpgrp(terminal, getpgrp()) == 0);
	NEED(tcsetattr(terminal, TCSANOW, &own) == 0);
	NEED(write(talk[0], &byte, 1) == 1);
	NEED(waitpid(child, &status, WUNTRACED) == child);
	if (WIFSTOPPED(status))
		(void)kill(child, SIGKILL);
	NEED(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	NEED(tcgetattr(terminal, &now) == 0);
	NEED(now.c_lflag == own.c_lflag);
	_exit(EXIT_SUCCESS);
}

START_TEST(job_in_the_background_leaves_the_mode_alone)
{
	char name[64];
	int status = -1, master = terminal_make(name, sizeof(name));
	pid_t child;

	if (!test_needs(master >= 0,
			"job_in_the_background_leaves_the_mode_alone",
			"a pseudo-terminal"))
		return;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		shell_of_raw_job(name);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	close(master);
}
END_TEST

/* ---- The other side ------------------------------------------------------ */

static bool is_hidden(int fd)
{
	struct termios now;

	NEED(tcgetattr(fd, &now) == 0);
	return !(now.c_lflag & ECHO);
}

/* As a shell behind a pseudo-terminal, until the other end is closed. */
static void session_hold(const char *name, int talk)
{
	char byte = 's';

	(void)session_begin(name);
	NEED(write(talk, &byte, 1) == 1);
	(void)!read(talk, &byte, 1);
	_exit(EXIT_SUCCESS);
}

/* In a process of its own, since one of the ways is its end. */
static void hide_and_restore(int master, bool restores)
{
	NEED(!is_hidden(master));
	NEED(weft_terminal_hide(master) == 0);
	NEED(is_hidden(master));
	if (restores) {
		NEED(weft_terminal_restore(master) == 0);
		NEED(!is_hidden(master));
	}
	exit(EXIT_SUCCESS);
}

static void expect_success(pid_t child)
{
	int status = -1;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

START_TEST(mode_is_restored_through_the_other_side)
{
	char name[64], byte;
	int talk[2], master = terminal_make(name, sizeof(name));
	pid_t holder, child;

	if (!test_needs(master >= 0, "mode_is_restored_through_the_other_side",
			"a pseudo-terminal"))
		return;
	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), 0);
	holder = fork();
	ck_assert_int_ge(holder, 0);
	if (holder == 0) {
		close(talk[0]);
		session_hold(name, talk[1]);
	}
	close(talk[1]);
	ck_assert_int_eq(read(talk[0], &byte, 1), 1);
	for (int way = 0; way < 2; way++) {
		child = fork();
		ck_assert_int_ge(child, 0);
		if (child == 0)
			hide_and_restore(master, way);
		expect_success(child);
		ck_assert(!is_hidden(master));
	}
	close(talk[0]);
	expect_success(holder);
	close(master);
}
END_TEST

/* ---- A terminal that takes no more --------------------------------------- */

enum { FULL_BYTES = 64 << 10 };

struct full {
	int master, terminal;
	weft__atomic(bool) went_on; /* another task did */
	weft__atomic(bool) written;
	bool in_time; /* before the terminal was read */
};

static int64_t fill(void *arg)
{
	struct full *full = *(struct full **)arg;
	static char text[FULL_BYTES];
	int r;

	memset(text, 'x', sizeof(text));
	r = weft_write_all(full->terminal, text, sizeof(text), NULL);
	/* pairs: [test.full] */
	weft__store(&full->written, true, release);
	return r;
}

static int64_t write_and_go_on(void *arg)
{
	struct full *full = arg;
	int64_t result = 0;

	WEFT_SCOPE(scope, &result) {
		ck_assert_int_eq(WEFT_GO(scope, fill, full), 0);
		for (int i = 0; i < 20; i++)
			ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		/* pairs: [test.full] */
		weft__store(&full->went_on, true, release);
	}
	return result;
}

/* Reads the terminal when the other task has gone on, or after some seconds. */
static void *read_late(void *arg)
{
	struct full *full = arg;
	char text[4096];

	for (int i = 0; i < 20000 && !full->in_time; i++) {
		thread_pause_ns(1000000);
		/* pairs: [test.full] */
		full->in_time = weft__load(&full->went_on, acquire);
	}
	/* pairs: [test.full] */
	while (!weft__load(&full->written, acquire)) {
		struct pollfd ready = { .fd = full->master, .events = POLLIN };

		if (poll(&ready, 1, 1) > 0 &&
		    read(full->master, text, sizeof(text)) < 0)
			break;
	}
	return NULL;
}

static void expect_to_go_on(const char *name, int master)
{
	struct full full = { .master = master };
	pthread_t thread;

	full.terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert_int_ge(full.terminal, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, read_late, &full), 0);
	io_run(write_and_go_on, &full, 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(full.in_time);
	close(full.terminal);
}

/* More than once: sometimes a write ends early that waits for room in the
 * kernel. */
START_TEST(full_terminal_holds_up_no_other_task)
{
	char name[64];
	int master = terminal_make(name, sizeof(name));

	if (!test_needs(master >= 0, "full_terminal_holds_up_no_other_task",
			"a pseudo-terminal"))
		return;
	for (int i = 0; i < 20; i++)
		expect_to_go_on(name, master);
	close(master);
}
END_TEST

/* The kernel wakes the waiters of a terminal whose mode changes, and Linux 6.18
 * has io_uring's polls fail with EINVAL then.  More often than a poll that
 * fails is repeated. */
enum { CHANGES = 400 };

static int64_t modes_change(void *arg)
{
	int terminal = *(int *)arg;
	struct termios mode;

	ck_assert_int_eq(tcgetattr(terminal, &mode), 0);
	for (int i = 0; i < CHANGES; i++) {
		ck_assert_int_eq(weft_sleep(WEFT_US(200)), 0);
		mode.c_lflag ^= ICANON;
		ck_assert_int_eq(tcsetattr(terminal, TCSANOW, &mode), 0);
	}
	return 0;
}

static int64_t line_write(void *arg)
{
	return weft_write_all(*(int *)arg, "x\n", 2, NULL);
}

static int64_t poll_for_input(void *arg)
{
	return weft_poll(*(int *)arg, POLLIN) == POLLIN ? 0 : -EIO;
}

static int64_t await_for_input(void *arg)
{
	struct waiter w = { .fd = *(int *)arg };
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int64_t r = 0;

	opts.flags = WEFT_FUTURE;
	WEFT_SCOPE(scope, &r)
		NEED(weft_go_opts(scope, await_input, &w, sizeof(w), &opts) ==
		     0);
	return r;
}

IO_TEST(wait_for_input_goes_on_when_the_mode_changes)
{
	char name[64];
	int master = terminal_make(name, sizeof(name)), terminal;
	int64_t r = 0;

	if (!test_needs(master >= 0,
			"wait_for_input_goes_on_when_the_mode_changes",
			"a pseudo-terminal"))
		return 0;
	terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert_int_ge(terminal, 0);
	WEFT_SCOPE(scope, &r) {
		ck_assert_int_eq(WEFT_GO(scope, poll_for_input, terminal), 0);
		ck_assert_int_eq(WEFT_GO(scope, await_for_input, terminal), 0);
		ck_assert_int_eq(modes_change(&terminal), 0);
		ck_assert_int_eq(line_write(&master), 0);
	}
	ck_assert_int_eq(r, 0);
	close(terminal);
	close(master);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/tty");
	TCase *tc = tcase_create("terminal");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, read_goes_on_when_the_job_is_in_the_foreground_again);
	tcase_add_test(tc, job_in_the_background_leaves_the_mode_alone);
	tcase_add_test(tc, mode_is_restored_through_the_other_side);
	tcase_add_test(tc, full_terminal_holds_up_no_other_task);
	io_add_test(tc, wait_for_input_goes_on_when_the_mode_changes);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

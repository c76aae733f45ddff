/* SPDX-License-Identifier: MIT */
/*
 * Modes of a terminal that are restored on every way out, passwords, the size.
 *
 * A child changes the mode of a pseudo-terminal, and ends in one of many ways;
 * then the terminal has the mode that it had before.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>

#include "tests/support/child_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_calls.h"

static int master, terminal;

static bool terminal_make(const char *test)
{
	char name[64];

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (!test_needs(master >= 0 && grantpt(master) == 0 &&
				unlockpt(master) == 0 &&
				ptsname_r(master, name, sizeof(name)) == 0,
			test, "a pseudo-terminal"))
		return false;
	terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert_int_ge(terminal, 0);
	return true;
}

static void terminal_drop(void)
{
	close(terminal);
	close(master);
}

static bool is_raw(void)
{
	struct termios now;

	ck_assert_int_eq(tcgetattr(terminal, &now), 0);
	return !(now.c_lflag & ICANON);
}

static bool is_hidden(void)
{
	struct termios now;

	ck_assert_int_eq(tcgetattr(terminal, &now), 0);
	return !(now.c_lflag & ECHO);
}

/* ---- The ways out -------------------------------------------------------- */

static void handle(int number)
{
	(void)number;
	exit(3);
}

static void way_return(void)
{
}
static void way_exit(void)
{
	exit(0);
}
static void way_abort(void)
{
	abort();
}
static void way_terminate(void)
{
	kill(getpid(), SIGTERM);
}
static void way_interrupt(void)
{
	raise(SIGINT);
}
static void way_hang_up(void)
{
	raise(SIGHUP);
}
/* A sanitizer would end the process itself for a write to NULL. */
static void way_fault(void)
{
	volatile char *closed = mmap(NULL, 1, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*closed = 1;
}
static void way_handler(void)
{
	signal(SIGINT, handle);
	raise(SIGINT);
}
static void way_restore(void)
{
	NEED(weft_terminal_restore(terminal) == 0);
	_exit(0);
}

static void (*const ways[])(void) = {
	way_return,    way_exit,    way_abort, way_terminate, way_interrupt,
	way_hang_up, way_fault, way_handler,   way_restore,
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static int64_t leave(void *arg)
{
	static const struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	/* libcheck has handlers. */
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	NEED(weft_terminal_raw(terminal) == 0);
	NEED(is_raw());
	(*(void (*const *)(void))arg)();
	return 0;
}

START_TEST(mode_is_restored_on_every_way_out)
{
	pid_t child;
	int status;

	if (!TEST_HAS_SIGNALS ||
	    !terminal_make("mode_is_restored_on_every_way_out"))
		return;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		/* In a task, or before there is a runtime. */
		if (_i % 2)
			exit((int)leave((void *)(uintptr_t)&ways[_i / 2]));
		exit((int)weft_run(leave, (void *)(uintptr_t)&ways[_i / 2],
				   NULL));
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(!is_raw());
	if (ways[_i / 2] == way_terminate)
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	terminal_drop();
}
END_TEST

/* A job of its own, so that the default action stops it. */
START_TEST(stopped_process_gives_the_terminal_back)
{
	pid_t child;
	int status;

	if (!TEST_HAS_SIGNALS ||
	    !terminal_make("stopped_process_gives_the_terminal_back"))
		return;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		setpgid(0, 0);
		signal(SIGTSTP, SIG_DFL);
		signal(SIGCONT, SIG_DFL);
		NEED(weft_terminal_raw(terminal) == 0);
		for (int i = 0; i < 2; i++) {
			raise(SIGTSTP);
			NEED(is_raw());
		}
		_exit(is_raw() ? 0 : 1);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
		ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
		ck_assert(!is_raw());
		ck_assert_int_eq(kill(child, SIGCONT), 0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	/* _exit() restores nothing. */
	ck_assert(is_raw());
	terminal_drop();
}
END_TEST

/* The kernel drops the default SIGTSTP: nobody could continue such a group. */
START_TEST(orphaned_process_goes_on_with_its_mode)
{
	pid_t child;
	int status;

	if (!TEST_HAS_SIGNALS ||
	    !terminal_make("orphaned_process_goes_on_with_its_mode"))
		return;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		setsid();
		signal(SIGTSTP, SIG_DFL);
		NEED(weft_terminal_raw(terminal) == 0);
		for (int i = 0; i < 2; i++) {
			NEED(raise(SIGTSTP) == 0);
			NEED(is_raw());
		}
		NEED(weft_terminal_hide(terminal) == 0);
		NEED(raise(SIGTSTP) == 0);
		NEED(!is_raw() && is_hidden());
		exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert(!is_raw() && !is_hidden());
	terminal_drop();
}
END_TEST

/* The init process of a namespace: its default SIGTERM is dropped as well. */
static bool init_make(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
}

static void be_init(void)
{
	signal(SIGTERM, SIG_DFL);
	NEED(getpid() == 1);
	NEED(weft_terminal_raw(terminal) == 0);
	for (int i = 0; i < 2; i++) {
		NEED(kill(1, SIGTERM) == 0);
		NEED(is_raw());
	}
	NEED(weft_terminal_restore(terminal) == 0);
	_exit(0);
}

START_TEST(init_goes_on_with_its_mode)
{
	static const char name[] = "init_goes_on_with_its_mode";
	pid_t child;
	int status;

	if (!TEST_HAS_SIGNALS ||
	    !test_needs(test_can(init_make), name, "a pid namespace") ||
	    !terminal_make(name))
		return;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		NEED(init_make());
		child = fork();
		NEED(child >= 0);
		if (child == 0)
			be_init();
		NEED(waitpid(child, &status, 0) == child);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	terminal_drop();
}
END_TEST

/* So a program that it starts ignores it, too. */
START_TEST(signal_that_is_ignored_stays_so)
{
	struct sigaction now, old, ignored = { .sa_handler = SIG_IGN };

	if (!terminal_make("signal_that_is_ignored_stays_so"))
		return;
	ck_assert_int_eq(sigaction(SIGHUP, &ignored, &old), 0);
	ck_assert_int_eq(weft_terminal_raw(terminal), 0);
	ck_assert_int_eq(sigaction(SIGHUP, NULL, &now), 0);
	ck_assert(now.sa_handler == SIG_IGN);
	ck_assert_int_eq(weft_terminal_restore(terminal), 0);
	ck_assert_int_eq(sigaction(SIGHUP, &old, &now), 0);
	ck_assert(now.sa_handler == SIG_IGN);
	terminal_drop();
}
END_TEST

/* The places of the parent are free for a child. */
START_TEST(child_has_places_of_its_own)
{
	struct sigaction now;
	int status, fds[8];
	pid_t child;

	if (!terminal_make("child_has_places_of_its_own"))
		return;
	for (int i = 0; i < 8; i++) {
		fds[i] = dup(terminal);
		ck_assert_int_eq(weft_terminal_raw(fds[i]), 0);
	}
	ck_assert_int_eq(weft_terminal_raw(terminal), -EMFILE);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		signal(SIGTTOU, SIG_IGN);
		NEED(weft_terminal_restore(fds[0]) == -EBADF);
		NEED(weft_terminal_hide(terminal) == 0);
		NEED(weft_terminal_restore(terminal) == 0);
		NEED(sigaction(SIGQUIT, NULL, &now) == 0);
		NEED(now.sa_handler == SIG_DFL);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	for (int i = 7; i >= 0; i--) {
		ck_assert_int_eq(weft_terminal_restore(fds[i]), 0);
		close(fds[i]);
	}
	terminal_drop();
}
END_TEST

/* The terminal has hung up.  The mode from before is still the program's to
 * restore. */
START_TEST(failure_ends_no_mode_of_before)
{
	if (!terminal_make("failure_ends_no_mode_of_before"))
		return;
	ck_assert_int_eq(weft_terminal_raw(terminal), 0);
	close(master);
	ck_assert_int_eq(weft_terminal_hide(terminal), -EIO);
	ck_assert_int_eq(weft_terminal_restore(terminal), -EIO);
	ck_assert_int_eq(weft_terminal_restore(terminal), -EBADF);
	ck_assert_int_lt(weft_terminal_hide(terminal), 0);
	ck_assert_int_eq(weft_terminal_restore(terminal), -EBADF);
	close(terminal);
}
END_TEST

START_TEST(modes_are_counted_and_kept)
{
	struct sigaction action, old;
	int fds[2], before;

	if (!terminal_make("modes_are_counted_and_kept"))
		return;
	before = fds_open();
	ck_assert_int_eq(sigaction(SIGTERM, NULL, &old), 0);
	ck_assert_int_eq(weft_terminal_raw(terminal), 0);
	ck_assert_int_eq(weft_terminal_hide(terminal), 0);
	ck_assert(!is_raw() && is_hidden());
	ck_assert_int_eq(weft_terminal_restore(terminal), 0);
	ck_assert(!is_raw() && !is_hidden());
	ck_assert_int_eq(weft_terminal_restore(terminal), -EBADF);
	ck_assert_int_eq(sigaction(SIGTERM, NULL, &action), 0);
	ck_assert(action.sa_handler == old.sa_handler);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(weft_terminal_raw(fds[0]), -ENOTTY);
	ck_assert_int_eq(weft_terminal_hide(-1), -EBADF);
	close(fds[0]);
	close(fds[1]);
	ck_assert_int_eq(fds_open(), before);
	terminal_drop();
}
END_TEST

/* ---- Passwords ----------------------------------------------------------- */

static void *type_later(void *arg)
{
	while (!is_hidden())
		thread_pause_ns(100000);
	/* Typed after the prompt. */
	for (char prompt[64]; read(master, prompt, sizeof(prompt)) <= 0;)
		;
	ck_assert_int_eq(write(master, arg, strlen(arg)), (int)strlen(arg));
	return NULL;
}

static int64_t ask_in_vain(void *arg)
{
	char buf[64];

	return **(ssize_t **)arg = weft_terminal_password(terminal, "?", buf,
							  sizeof(buf));
}

/* A part of a line that was typed before the call ended is not left to the next
 * reader. */
static void expect_no_rest(void)
{
	struct termios before, now;
	ssize_t n = 0, *result = &n;
	int ready = 0;

	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, ask_in_vain, result), 0);
		wait_until(is_hidden());
		ck_assert_int_eq(write(master, "secr", 4), 4);
		weft_scope_cancel(scope);
	}
	ck_assert_int_eq(n, -ECANCELED);
	ck_assert_int_eq(tcgetattr(terminal, &before), 0);
	now = before;
	now.c_lflag &= ~(tcflag_t)ICANON;
	ck_assert_int_eq(tcsetattr(terminal, TCSANOW, &now), 0);
	ck_assert_int_eq(ioctl(terminal, FIONREAD, &ready), 0);
	ck_assert_int_eq(ready, 0);
	ck_assert_int_eq(tcsetattr(terminal, TCSANOW, &before), 0);
}

static int64_t ask(void *arg)
{
	static char text[] = "secret\n", eof[] = "\4";
	static char longer[] = "0123456789\n";
	static char *const typed[] = { text, eof, longer };
	static const ssize_t results[] = { 6, -ENODATA, -EMSGSIZE };
	char buf[9] = "";

	(void)arg;
	for (int i = 0; i < 3; i++) {
		pthread_t thread;

		ck_assert_int_eq(pthread_create(&thread, NULL, type_later,
						typed[i]),
				 0);
		ck_assert_int_eq(weft_terminal_password(terminal, "Password: ",
							buf, sizeof(buf)),
				 results[i]);
		ck_assert_str_eq(buf, i == 0 ? "secret" : "");
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert(!is_hidden());
	}
	WEFT_WITHIN(WEFT_MS(2))
		ck_assert_int_eq(weft_terminal_password(terminal, "?", buf,
							sizeof(buf)),
				 -ETIMEDOUT);
	ck_assert(!is_hidden());
	expect_no_rest();
	ck_assert_int_eq(weft_terminal_password(terminal, "?", buf, 0),
			 -EINVAL);
	ck_assert_int_eq(weft_terminal_password(terminal, NULL, buf, 1),
			 -EFAULT);
	return 0;
}

START_TEST(password_is_read_without_an_echo)
{
	if (!terminal_make("password_is_read_without_an_echo"))
		return;
	io_run(ask, NULL, 1 + (unsigned)_i);
	terminal_drop();
}
END_TEST

/* ---- The size ------------------------------------------------------------ */

static int64_t wait_in_vain(void *arg)
{
	return weft_terminal_resize_wait(*(int *)arg);
}

static void expect_cancelled(int fd)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t r = 0;

	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, wait_in_vain, &fd,
					      sizeof(fd), &opts),
				 0);
		wait_until(task_has_settled(task));
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(weft_join(task, &r), 0);
	}
	ck_assert_int_eq(r, -ECANCELED);
}

static int64_t wait_for_size(void *arg)
{
	int fd = weft_terminal_resize_open(), second;

	(void)arg;
	ck_assert_int_ge(fd, 0);
	second = weft_terminal_resize_open();
	ck_assert_int_ge(second, 0);
	WEFT_WITHIN(WEFT_MS(2))
		ck_assert_int_eq(weft_terminal_resize_wait(fd), -ETIMEDOUT);
	expect_cancelled(fd);
	ck_assert_int_eq(kill(getpid(), SIGWINCH), 0);
	ck_assert_int_eq(weft_terminal_resize_wait(fd), 0);
	ck_assert_int_eq(weft_terminal_resize_wait(second), 0);
	ck_assert_int_eq(weft_terminal_resize_close(fd), 0);
	ck_assert_int_eq(weft_terminal_resize_close(fd), -EBADF);
	ck_assert_int_eq(kill(getpid(), SIGWINCH), 0);
	ck_assert_int_eq(weft_terminal_resize_wait(second), 0);
	return weft_terminal_resize_close(second);
}

static int64_t close_all(void *arg)
{
	int *fds = arg;

	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(weft_terminal_resize_close(fds[i]), 0);
	return 0;
}

START_TEST(change_of_the_size_wakes_each_task)
{
	int fds[8];

	/* The eventfds stay. */
	for (int i = 0; i < 8; i++) {
		fds[i] = weft_terminal_resize_open();
		ck_assert_int_ge(fds[i], 0);
	}
	ck_assert_int_eq(weft_terminal_resize_open(), -EMFILE);
	ck_assert_int_eq(weft_terminal_resize_close(fds[0]), -EPERM);
	ck_assert_int_eq(weft_run(close_all, fds, NULL), 0);
	io_run(wait_for_size, NULL, 1 + (unsigned)_i);
}
END_TEST

START_TEST(size_is_that_of_the_window)
{
	struct winsize size = { .ws_col = 132, .ws_row = 50 };
	unsigned columns = 0, rows = 0;

	if (!terminal_make("size_is_that_of_the_window"))
		return;
	ck_assert_int_eq(weft_terminal_size(terminal, &columns, &rows),
			 -ENODATA);
	ck_assert_int_eq(ioctl(master, TIOCSWINSZ, &size), 0);
	ck_assert_int_eq(weft_terminal_size(terminal, &columns, &rows), 0);
	ck_assert_uint_eq(columns, 132);
	ck_assert_uint_eq(rows, 50);
	ck_assert_int_eq(weft_terminal_size(-1, &columns, &rows), -EBADF);
	terminal_drop();
}
END_TEST

/* The first one of a process makes a descriptor. */
static int64_t open_without_descriptors(void *arg)
{
	const unsigned *error = arg, call = SYS_eventfd2;

	NEED(refuse_calls(&call, 1, *error));
	NEED(weft_terminal_resize_open() == -(int)*error);
	return 0;
}

START_TEST(change_of_the_size_needs_a_descriptor)
{
	unsigned errors[] = { EMFILE, ENFILE, ENOMEM };

	child_run(open_without_descriptors, &errors[_i]);
}
END_TEST

/* A program in the background of a script, or under nohup(1), ignores some. */
static void signals_reset(void)
{
	static const int numbers[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)signal(numbers[i], SIG_DFL);
}

int main(void)
{
	Suite *suite = suite_create("io/terminal");
	TCase *tc = tcase_create("terminal");

	signals_reset();
	tcase_add_loop_test(tc, mode_is_restored_on_every_way_out, 0, 2 * WAYS);
	tcase_add_test(tc, stopped_process_gives_the_terminal_back);
	tcase_add_test(tc, orphaned_process_goes_on_with_its_mode);
	tcase_add_test(tc, init_goes_on_with_its_mode);
	tcase_add_test(tc, signal_that_is_ignored_stays_so);
	tcase_add_test(tc, child_has_places_of_its_own);
	tcase_add_test(tc, failure_ends_no_mode_of_before);
	tcase_add_test(tc, modes_are_counted_and_kept);
	tcase_add_loop_test(tc, password_is_read_without_an_echo, 0, 2);
	tcase_add_loop_test(tc, change_of_the_size_wakes_each_task, 0, 2);
	if (test_needs(test_can(child_may_refuse),
		       "change_of_the_size_needs_a_descriptor",
		       NEEDS_REFUSED_CALLS))
		tcase_add_loop_test(tc, change_of_the_size_needs_a_descriptor,
				    0, 3);
	tcase_add_test(tc, size_is_that_of_the_window);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

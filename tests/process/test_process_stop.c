/* SPDX-License-Identifier: MIT */
/*
 * A child that the terminal stops (^Z) before its program begins would hold up
 * the thread that waits for it.  That thread cannot stop meanwhile, so a shell
 * would wait for both for ever.
 *
 * A lease of the program's file holds the child up in execve(2): the kernel
 * opens the file when the lease is given back.
 */
#include <pthread.h>

#include "tests/support/child_kit.h"
#include "tests/support/process_kit.h"

enum { HANGS_S = 50, LOOKS = 50, LOOK_NS = 1000000 };

static char path[64];

static void program_make(void)
{
	static const char text[] = "#!/bin/sh\nexit 7\n";
	int fd;

	snprintf(path, sizeof(path), "/tmp/weft-stop-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(fchmod(fd, 0700), 0);
	ck_assert_int_eq(close(fd), 0);
}

/* The descriptor; or -1: the file system has no leases. */
static int lease_take(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool can_take_lease(void)
{
	return lease_take() >= 0;
}

/* A child of this process is stopped. */
static bool stop_is_seen(void)
{
	for (int i = 0; i < LOOKS; i++) {
		siginfo_t info = { .si_pid = 0 };

		NEED(waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG) == 0);
		if (info.si_pid)
			return true;
		thread_pause_ns(LOOK_NS);
	}
	return false;
}

struct stop {
	int lease, number;
	bool seen;
};

/* When the child is in execve(2): the kernel asks for the lease. */
static void *stop_child(void *arg)
{
	struct stop *stop = arg;

	while (fcntl(stop->lease, F_GETLEASE) == F_WRLCK)
		thread_pause_ns(LOOK_NS);
	NEED(kill(0, stop->number) == 0);
	stop->seen = stop_is_seen();
	NEED(fcntl(stop->lease, F_SETLEASE, F_UNLCK) == 0);
	if (stop->seen)
		NEED(kill(0, SIGCONT) == 0);
	return NULL;
}

static int64_t spawn_and_stop(void *arg)
{
	struct stop stop = { lease_take(), *(int *)arg, false };
	const char *argv[] = { path, NULL };
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;
	struct weft_process *process;
	struct weft_exit exit;
	pthread_t thread;

	NEED(stop.lease >= 0);
	NEED(pthread_create(&thread, NULL, stop_child, &stop) == 0);
	opts.argv = argv;
	NEED(weft_spawn(&opts, &process) == 0);
	NEED(pthread_join(thread, NULL) == 0);
	NEED(!stop.seen);
	/* The signal may have come late, and stopped the program itself. */
	NEED(weft_process_signal(process, SIGCONT) == 0);
	NEED(weft_process_wait(process, &exit) == 0);
	NEED(exit.status == 7);
	NEED(weft_process_close(process, NULL) == 0);
	close(stop.lease);
	return 0;
}

/* As a job of a shell: the signal is for all of the group. */
static int64_t job(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	(void)alarm(HANGS_S);
	opts.workers = 1;
	NEED(setpgid(0, 0) == 0);
	NEED(signal(SIGIO, SIG_IGN) != SIG_ERR);
	NEED(signal(*(int *)arg, SIG_IGN) != SIG_ERR);
	return weft_run(spawn_and_stop, arg, &opts);
}

START_TEST(stop_before_the_program_begins_holds_up_nobody)
{
	static int numbers[] = { SIGTSTP, SIGTTIN, SIGTTOU };

	process_test_begin(_i);
	program_make();
	if (test_needs(TEST_HAS_VFORK && test_can(can_take_lease),
		       "stop_before_the_program_begins_holds_up_nobody",
		       "leases of files, and a kernel of its own"))
		for (int i = 0; i < 3; i++)
			child_run(job, &numbers[i]);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("process/stop");
	TCase *tc = tcase_create("stop");

	tcase_set_timeout(tc, 3 * HANGS_S + 10);
	process_add_test(tc, stop_before_the_program_begins_holds_up_nobody);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the tests of io/ and net/ share.
 *
 * IO_TEST defines a test whose body is the first task of a runtime, on one
 * worker and on two.  After each run as many descriptors are open as before, no
 * completion came that no task waits for, and no task had to be rescued.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_KIT_H
#define WEFT_TESTS_SUPPORT_IO_KIT_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weft/weft.h>

#include "io/request/reactor.h"
#include "runtime/sched/runtime.h"
#include "runtime/stack/fiber.h"

/* Open descriptors of the process, but for the one that counts them.  While a
 * worker starts there may be one more for a moment: sanitizers read its stack's
 * place from a file.  So within a run compare by <=. */
static inline int fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3; /* ".", "..", and the directory itself */
}

/* A thread that is no worker does nothing for a while: a slow peer. */
static inline void thread_pause_ns(long ns)
{
	struct timespec pause = { ns / 1000000000, ns % 1000000000 };

	ppoll(NULL, 0, &pause, NULL);
}

/* As many are open as before, or soon are: a thread that has written a dump
 * goes by itself, and when it gives its memory back glibc reads a file. */
static inline void expect_fds(int before)
{
	for (int i = 0; i < 5000 && fds_open() != before; i++)
		thread_pause_ns(1000000);
	ck_assert_int_eq(fds_open(), before);
}

/* The first thing that a worker's thread does needs a descriptor for a moment,
 * and then it looks for something to do. */
static inline void wait_for_all_workers(void)
{
	struct weft_worker_stats stats;

	for (unsigned i = 0;
	     weft_stats_worker(weft_runtime_self(), i, &stats) == 0;)
		if (stats.ticks > 0 || stats.parks > 0 || stats.polls > 0)
			i++;
		else
			ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
}

/* Nothing lay about that a worker should have been woken for.  A tool that
 * runs one thread at a time makes those wait that were woken. */
static inline void expect_no_rescues(void)
{
#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN) && !defined(WEFT_VALGRIND)
	struct weft_stats stats;

	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &stats), 0);
	ck_assert_uint_eq(stats.total.rescues, 0);
#endif
}

/* A main task that begins when all workers have, and also sees to it that no
 * completion came that no task waits for. */
struct io_main {
	weft_fn fn;
	void *arg;
};

static inline int64_t io_main_task(void *arg)
{
	struct io_main *io_main = arg;
	int64_t r;

	wait_for_all_workers();
	r = io_main->fn(io_main->arg);

	ck_assert_uint_eq(weft__load(&weft__reactor(weft_runtime_self())->stale,
				     relaxed),
			  0);
	expect_no_rescues();
	return r;
}

/* Runs fn(arg) as the first task.  Afterwards as many descriptors are open as
 * before. */
static inline int64_t io_run_opts(weft_fn fn, void *arg,
				  const struct weft_opts *opts)
{
	struct io_main io_main = { fn, arg };
	int before = fds_open();
	int64_t r = weft_run(io_main_task, &io_main, opts);

	expect_fds(before);
	return r;
}

static inline void io_run(weft_fn fn, void *arg, unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	ck_assert_int_eq(io_run_opts(fn, arg, &opts), 0);
}

/* A test whose body runs in a task of its own, on one worker and on two. */
#define IO_TEST(name)                                   \
	static int64_t name##_task(void *arg);          \
	START_TEST(name)                                \
	{                                               \
		io_run(name##_task, NULL, _i ? 2 : 1);  \
	}                                               \
	END_TEST                                        \
	static int64_t name##_task(void *arg __attribute__((unused)))

#define io_add_test(tcase, name) tcase_add_loop_test(tcase, name, 0, 2)

static inline void socket_pair(int fds[2])
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    fds),
			 0);
}

static inline void close_both(const int fds[2])
{
	ck_assert_int_eq(weft_close(fds[0]), 0);
	ck_assert_int_eq(weft_close(fds[1]), 0);
}

/* A listener on a free port of the loopback, and its address as text. */
static inline int tcp_listener(char text[WEFT_ADDR_TEXT_BYTES])
{
	struct weft_addr addr;
	int fd = weft_tcp_listen("127.0.0.1:0", NULL);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_local_addr(fd, &addr), 0);
	ck_assert_int_gt(weft_addr_format(&addr, text, WEFT_ADDR_TEXT_BYTES),
			 0);
	return fd;
}

/* Waits in a scope until a condition holds that other tasks or threads bring
 * about; fails after 20 s. */
#define wait_until(condition)                                          \
	do {                                                           \
		weft_nsec wait_until_by = weft_now() + WEFT_SEC(20);   \
		while (!(condition)) {                                 \
			ck_assert_msg(weft_now() < wait_until_by,      \
				      "never: %s", #condition);        \
			ck_assert_int_eq(weft_sleep(WEFT_US(200)), 0); \
		}                                                      \
	} while (0)

static inline uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The exit status of the only suite. */
static inline int io_tests_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif

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
int fds_open(void);

/* A thread that is no worker does nothing for a while: a slow peer. */
void thread_pause_ns(long ns);

/* As many are open as before, or soon are: a thread that has written a dump
 * goes by itself, and when it gives its memory back glibc reads a file. */
void expect_fds(int before);

/* Threads of the process, without the kernel's own for io_uring. */
int threads_now(void);

/* A joined thread stays listed until the kernel has removed it. */
void threads_become(int count);

/* Threads of the process while weft has none. */
int threads_alone(void);

/* The first thing that a worker's thread does needs a descriptor for a moment,
 * and then it looks for something to do. */
void wait_for_all_workers(void);

/* Runs fn(arg) as the first task.  Afterwards as many descriptors are open as
 * before.  The task begins when all workers have, and at its end no completion
 * has come that no task waits for. */
int64_t io_run_opts(weft_fn fn, void *arg, const struct weft_opts *opts);
void io_run(weft_fn fn, void *arg, unsigned workers);

/* A test whose body runs in a task of its own, on one worker and on two. */
#define IO_TEST(name)                                  \
	static int64_t name##_task(void *arg);         \
	START_TEST(name)                               \
	{                                              \
		io_run(name##_task, NULL, _i ? 2 : 1); \
	}                                              \
	END_TEST                                       \
	static int64_t name##_task(void *arg __attribute__((unused)))

#define io_add_test(tcase, name) tcase_add_loop_test(tcase, name, 0, 2)

void socket_pair(int fds[2]);

void close_both(const int fds[2]);

/* Moves a descriptor to a number that no other thread is given meanwhile, once
 * it is free: the kernel gives the lowest one, and a test has not so many. */
int fd_far(int fd);

/* The close of this end resets the connection. */
void reset_when_closed(int fd);

/* A listener on a free port of the loopback, and its address as text. */
int tcp_listener(char text[WEFT_ADDR_TEXT_BYTES]);
int tcp_listener_at(const char *address, char text[WEFT_ADDR_TEXT_BYTES]);

/* Waits in a scope until a condition holds that other tasks or threads bring
 * about; fails after 20 s. */
#define wait_until(condition)                                                  \
	do {                                                                   \
		weft_nsec wait_until_by = weft_now() + WEFT_SEC(20);           \
		while (!(condition)) {                                         \
			ck_assert_msg(weft_now() < wait_until_by, "never: %s", \
				      #condition);                             \
			ck_assert_int_eq(weft_sleep(WEFT_US(200)), 0);         \
		}                                                              \
	} while (0)

/* The task waits, or has ended without a wait. */
bool task_has_settled(struct weft_task task);

/* How many calls wait on the descriptor?  Their requests may still be in a
 * ring. */
int calls_waiting(int fd);

/* Sets a limit of the process, at most to what it may be, and returns the old
 * one. */
/* Bytes, as RLIMIT_AS counts them. */
rlim_t address_space_used(void);
struct rlimit limit_set(int which, rlim_t soft);
void limit_reset(int which, struct rlimit old);

/* The exit status of the only suite. */
int io_tests_run(Suite *suite);

#endif

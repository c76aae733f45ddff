/* SPDX-License-Identifier: MIT */
/*
 * Children for tests: the test program itself, which plays a role
 * (process_kit.c) when it has arguments.
 *
 * A child that finds something else than its arguments say ends with the number
 * of the line.
 */
#ifndef WEFT_TESTS_SUPPORT_PROCESS_KIT_H
#define WEFT_TESTS_SUPPORT_PROCESS_KIT_H

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

/* The end of a child, and of main() if there are arguments. */
int child_play(int argc, char **argv);

/* A child with a role, and an argument of it. */
struct role {
	const char *argv[8];
	struct weft_spawn_opts opts;
	/* Of role_start_ready(). */
	struct weft_child_fd output;
	int fd;
};

/* In place: the options point to the role's list. */
void role_init(struct role *role, const char *name, const char *arg);

/* Starts it and waits; it must end well. */
void role_run(struct role *role);
struct weft_process *role_start(struct role *role);

/* A role that writes a byte to descriptor 1 when it is ready; returns when it
 * is.  Its fd is the caller's end. */
struct weft_process *role_start_ready(struct role *role);

void expect_bytes(int fd, const char *text);
void expect_end(int fd);

/* No child of this process is left, of whatever kind. */
void expect_no_children(void);

/* A test on one worker and on two, with and without what newer kernels have. */
#define PROCESS_TEST(name)                                  \
	static int64_t name##_task(void *arg);              \
	START_TEST(name)                                    \
	{                                                   \
		process_test_begin(_i);                     \
		io_run(name##_task, NULL, _i & 1 ? 2 : 1);  \
		expect_no_children();                       \
	}                                                   \
	END_TEST                                            \
	static int64_t name##_task(void *arg __attribute__((unused)))

void process_test_begin(int turn);

#define process_add_test(tcase, name) tcase_add_loop_test(tcase, name, 0, 4)

/* An emulator has no memory that parent and child share: it loses errors. */
#if defined(WEFT_VALGRIND)
enum { TEST_HAS_VFORK = 0 };
#else
enum { TEST_HAS_VFORK = 1 };
#endif

#endif

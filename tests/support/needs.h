/* SPDX-License-Identifier: MIT */
/*
 * Requirements of tests that not every machine meets.  Such a test is then left
 * out, and the program prints its name.
 */
#ifndef WEFT_TESTS_SUPPORT_NEEDS_H
#define WEFT_TESTS_SUPPORT_NEEDS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool test_needs(bool met, const char *test, const char *what)
{
	if (!met)
		printf("skipped: %s: needs %s\n", test, what);
	return met;
}

/* Tries it in a child, so that it has no effect here. */
static inline bool test_can(bool (*try)(void))
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(try() ? EXIT_SUCCESS : EXIT_FAILURE);
	return child > 0 && waitpid(child, &status, 0) == child &&
	       status == 0;
}

/* May the process have `count` descriptors?  Raises its own limit, if that is
 * lower. */
static inline bool test_has_descriptors(rlim_t count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max < count)
		return false;
	if (limit.rlim_cur < count)
		limit.rlim_cur = count;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Becomes a user that no other process has: some limits count everything of a
 * user. */
static inline bool become_another_user(void)
{
	uid_t user = 20000 + (uid_t)getpid() % 40000;

	return setresuid(user, user, user) == 0;
}

#define NEEDS_ANOTHER_USER "a user of its own, which root can become"

#endif

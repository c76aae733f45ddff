/* SPDX-License-Identifier: MIT */
/*
 * Things that a test needs and not every machine has.  A test without them is
 * left out, and the program prints its name.
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

/* Valgrind sends a program's signals itself, and has actions of its own. */
#ifdef WEFT_VALGRIND
enum { TEST_HAS_SIGNALS = 0 };
#else
enum { TEST_HAS_SIGNALS = 1 };
#endif

static inline bool test_needs(bool met, const char *test, const char *what)
{
	if (!met)
		printf("skipped: %s: needs %s\n", test, what);
	return met;
}

/* In a child, so that it has no effect.  Valgrind has exit codes of its own. */
static inline bool test_can(bool (*try)(void))
{
	bool can = false;
	int fds[2], status;
	pid_t child;

	if (pipe(fds) < 0)
		return false;
	child = fork();
	if (child == 0) {
		can = try();
		_exit(write(fds[1], &can, sizeof(can)) == sizeof(can) ? 0 : 1);
	}
	close(fds[1]);
	if (read(fds[0], &can, sizeof(can)) != sizeof(can))
		can = false;
	close(fds[0]);
	return child > 0 && waitpid(child, &status, 0) == child && can;
}

/* May the process have that many descriptors?  Raises its own limit, if that is
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

/* May the user lock that much memory?  Buffers that the kernel picks from are
 * locked too; a stream that gets none does without. */
static inline bool test_may_lock(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool may = memory != MAP_FAILED && mlock(memory, bytes) == 0;

	if (memory != MAP_FAILED)
		munmap(memory, bytes);
	return may;
}

#define NEEDS_LOCKED_BYTES ((size_t)1 << 20)

/* A user that no other process has: some limits count all that a user has. */
static inline bool become_another_user(void)
{
	uid_t user = 20000 + (uid_t)getpid() % 40000;

	return setresuid(user, user, user) == 0;
}

#define NEEDS_ANOTHER_USER "a user of its own, which root can become"

#endif

/* SPDX-License-Identifier: MIT */
#include "tests/support/needs.h"

#include <sys/prctl.h>

bool test_needs(bool met, const char *test, const char *what)
{
	if (!met)
		printf("skipped: %s: needs %s\n", test, what);
	return met;
}

bool test_can(bool (*try)(void))
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

bool test_has_descriptors(rlim_t count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max < count)
		return false;
	if (limit.rlim_cur < count)
		limit.rlim_cur = count;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

bool test_may_lock(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool may = memory != MAP_FAILED && mlock(memory, bytes) == 0;

	if (memory != MAP_FAILED)
		munmap(memory, bytes);
	return may;
}

bool become_another_user(void)
{
	uid_t user = 20000 + (uid_t)getpid() % 40000;

	/* A search for leaks at the end traces the process. */
	return setresuid(user, user, user) == 0 &&
	       prctl(PR_SET_DUMPABLE, 1) == 0;
}

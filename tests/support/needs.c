/* SPDX-License-Identifier: MIT */
#include "tests/support/needs.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
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

bool become_unprivileged(void)
{
	return geteuid() != 0 || become_another_user();
}

static bool file_set(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 &&
		    write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* A namespace of users in which its own has the same number.  Others may not
 * make files in what is mounted there. */
static bool users_unshare(void)
{
	char user[32], group[32];

	snprintf(user, sizeof(user), "%u %u 1", geteuid(), geteuid());
	snprintf(group, sizeof(group), "%u %u 1", getegid(), getegid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       file_set("/proc/self/uid_map", user) &&
	       file_set("/proc/self/setgroups", "deny") &&
	       file_set("/proc/self/gid_map", group);
}

bool become_mount_owner(void)
{
	return (unshare(CLONE_NEWNS) == 0 || users_unshare()) &&
	       mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0;
}

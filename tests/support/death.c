/* SPDX-License-Identifier: MIT */
#include "tests/support/death.h"

static void death_listen(struct death *death, int fd)
{
	size_t length = 0;
	ssize_t n = 1;

	while (n > 0 && length < sizeof(death->text) - 1) {
		n = read(fd, death->text + length,
			 sizeof(death->text) - 1 - length);
		if (n > 0)
			length += (size_t)n;
	}
	death->text[length] = '\0';
}

struct death death_of(void (*fn)(void *arg), void *arg)
{
	struct death death;
	int fds[2];
	pid_t child;

	pipe_behind_stderr(fds);
	child = fork();
	if (child == 0) {
		struct rlimit no_core = { 0, 0 };

		setrlimit(RLIMIT_CORE, &no_core);
		dup2(fds[1], 2);
		close(fds[1]);
		fn(arg);
		_exit(0);
	}
	close(fds[1]);
	death_listen(&death, fds[0]);
	close(fds[0]);
	ck_assert_int_eq(waitpid(child, &death.status, 0), child);
	return death;
}

/* SPDX-License-Identifier: MIT */
/*
 * The end of a process that does something fatal, in a child of fork().
 */
#ifndef WEFT_TESTS_SUPPORT_DEATH_H
#define WEFT_TESTS_SUPPORT_DEATH_H

#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/pipe.h"

/* How it ended, and what it said. */
struct death {
	int status;
	char text[2000];
};

static inline void death_listen(struct death *death, int fd)
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

/* Calls fn(arg), which is to be fatal; if it returns the child exits with 0. */
static inline struct death death_of(void (*fn)(void *arg), void *arg)
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

#endif

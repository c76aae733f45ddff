/* SPDX-License-Identifier: MIT */
/*
 * A pipe for what a process writes to stderr.  A program may be started without
 * stdin, stdout and stderr, and those numbers are then the next free ones.
 */
#ifndef WEFT_TESTS_SUPPORT_PIPE_H
#define WEFT_TESTS_SUPPORT_PIPE_H

#include <check.h>
#include <fcntl.h>
#include <unistd.h>

/* Neither end is 0, 1 or 2. */
static inline void pipe_behind_stderr(int fds[2])
{
	int low[2];

	ck_assert_int_eq(pipe(low), 0);
	for (int i = 0; i < 2; i++) {
		fds[i] = fcntl(low[i], F_DUPFD, 3);
		ck_assert_int_ge(fds[i], 3);
	}
	close(low[0]);
	close(low[1]);
}

#endif

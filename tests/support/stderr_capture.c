/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/stderr_capture.h"

/* The capture of stderr until said_end(). */
static struct {
	int saved, fds[2];
} said;

/* Before main(), for the program may have been started without a stderr: then a
 * runtime would get the number, and lose what it has there to said_begin(). */
__attribute__((constructor)) static void said_prepare(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 3);
	close(fd);
}

void said_begin(void)
{
	ck_assert_int_eq(pipe(said.fds), 0);
	fflush(stderr);
	said.saved = dup(2);
	dup2(said.fds[1], 2);
}

const char *said_end(void)
{
	static char text[4096];
	ssize_t n;

	fflush(stderr);
	dup2(said.saved, 2);
	close(said.saved);
	close(said.fds[1]);
	n = read(said.fds[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(said.fds[0]);
	return text;
}

ssize_t said_read(void *buf, size_t bytes)
{
	return read(said.fds[0], buf, bytes);
}

_Noreturn void leave_memory(void)
{
	fflush(NULL);
	_exit(EXIT_SUCCESS);
}

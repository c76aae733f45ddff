/* SPDX-License-Identifier: MIT */
#include "runtime/dump/thread_look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/own_fd.h"

/* Ten words in hexadecimal. */
enum { TEXT_BYTES = 256 };

static int text_read(uint32_t thread, char *ret_text)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%u/syscall",
		       thread);
	fd = weft__fd_above_stdio(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return fd;
	n = read(fd, ret_text, TEXT_BYTES - 1);
	if (n <= 0)
		n = n < 0 ? -errno : -ENODATA;
	else
		ret_text[n] = '\0';
	close(fd);
	return n < 0 ? (int)n : 0;
}

/* The text is "running", or the number of the call, its arguments, sp and
 * pc. */
int weft__thread_sleeper(uint32_t thread, struct weft__sleeper *sleeper)
{
	char text[TEXT_BYTES], *at;
	uint64_t words[2] = { 0 };
	int error = text_read(thread, text);

	if (error < 0)
		return error;
	sleeper->call = (int)strtol(text, &at, 10);
	if (at == text)
		return 0;
	while (*at == ' ') {
		words[0] = words[1];
		words[1] = strtoull(at, &at, 16);
	}
	sleeper->sp = words[0];
	sleeper->pc = words[1];
	return 1;
}

/* As the kernel numbers the clocks of a thread: CPUCLOCK_PERTHREAD_MASK, with
 * one of these. */
enum { CLOCK_PERTHREAD = 4, CLOCK_USER = 1, CLOCK_ALL = 2 };

static int clock_of(uint32_t thread, unsigned kind)
{
	return (int)(~thread << 3 | CLOCK_PERTHREAD | kind);
}

static uint64_t time_of(int clock)
{
	struct timespec time;

	if (clock_gettime(clock, &time) < 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t weft__thread_ran_ns(uint32_t thread)
{
	return time_of(clock_of(thread, CLOCK_ALL));
}

int weft__thread_user_clock(uint32_t thread)
{
	return clock_of(thread, CLOCK_USER);
}

uint64_t weft__thread_user_ns(uint32_t thread)
{
	return time_of(weft__thread_user_clock(thread));
}

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

int weft__thread_clock(uint32_t thread)
{
	/* As the kernel numbers them: CPUCLOCK_PERTHREAD_MASK |
	 * CPUCLOCK_SCHED. */
	return (int)(~thread << 3 | 4 | 2);
}

uint64_t weft__thread_ran_ns(uint32_t thread)
{
	struct timespec time;

	if (clock_gettime(weft__thread_clock(thread), &time) < 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

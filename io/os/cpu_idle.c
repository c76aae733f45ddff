/* SPDX-License-Identifier: MIT */
#include "io/os/cpu_idle.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/own_fd.h"

int weft__cpu_idle_open(void)
{
	return weft__fd_above_stdio(open("/proc/stat", O_RDONLY | O_CLOEXEC));
}

/* The line has "cpu", and the ticks spent on: users' programs, those of them
 * with low priority, the kernel, nothing, nothing but a wait for a disk, ... */
static bool line_parse(const char *line, unsigned long long *ret_ticks)
{
	enum { IDLE = 4, FIELDS };
	unsigned long long field = 0;
	char *end = (char *)(uintptr_t)line + strlen("cpu");

	if (strncmp(line, "cpu ", strlen("cpu ")) != 0)
		return false;
	*ret_ticks = 0;
	for (int i = 1; i <= FIELDS; i++) {
		line = end;
		field = strtoull(line, &end, 10);
		if (end == line)
			return false;
		if (i >= IDLE)
			*ret_ticks += field;
	}
	return true;
}

uint64_t weft__cpu_idle_ns(int fd)
{
	long each = sysconf(_SC_CLK_TCK);
	unsigned long long ticks;
	ssize_t bytes = -1;
	char text[160];

	if (fd >= 0)
		bytes = pread(fd, text, sizeof(text) - 1, 0);
	if (bytes <= 0 || each <= 0)
		return 0;
	text[bytes] = '\0';
	return line_parse(text, &ticks) ?
		       ticks * (1000000000u / (unsigned long)each) :
		       0;
}

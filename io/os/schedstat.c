/* SPDX-License-Identifier: MIT */
#include "io/os/schedstat.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/own_fd.h"

void weft__schedstat_open(struct weft__schedstat *stat)
{
	stat->fd = weft__fd_above_stdio(
		open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC));
}

void weft__schedstat_close(struct weft__schedstat *stat)
{
	if (stat->fd >= 0)
		close(stat->fd);
}

void weft__schedstat_own(struct weft__schedstat *stat)
{
	int fd;

	stat->seen = true;
	if (stat->fd < 0)
		return;
	fd = weft__fd_above_stdio(
		open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return;
	stat->own = dup3(fd, stat->fd, O_CLOEXEC) >= 0;
	close(fd);
}

uint64_t weft__schedstat_waited_ns(struct weft__schedstat *stat)
{
	char text[64], *end;
	ssize_t bytes = -1;

	if (stat->own)
		bytes = pread(stat->fd, text, sizeof(text) - 1, 0);
	if (bytes <= 0)
		return stat->waited_ns;
	text[bytes] = '\0';
	/* The fields: time run, time waited, number of runs. */
	strtoull(text, &end, 10);
	stat->waited_ns = strtoull(end, NULL, 10);
	return stat->waited_ns;
}

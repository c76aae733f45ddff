/* SPDX-License-Identifier: MIT */
#include "runtime/base/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int weft__fd_above_stdio(int fd)
{
	int r;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd;
	r = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (r < 0)
		r = -errno;
	close(fd);
	return r;
}

/* SPDX-License-Identifier: MIT */
/* Out of line, as those of syscall.c.  (musl makes a system call for each
 * message that is sent.) */
#include "io/os/datagrams.h"

#include <errno.h>
#include <stddef.h>

#define LEAF __attribute__((noinline))

static inline int result(int r)
{
	return r < 0 ? -errno : r;
}

LEAF int weft__datagrams_send(int fd, struct mmsghdr *messages, unsigned count)
{
	int r;

	do
		r = result(sendmmsg(fd, messages, count,
				    MSG_DONTWAIT | MSG_NOSIGNAL));
	while (r == -EINTR);
	return r;
}

LEAF int weft__datagrams_recv(int fd, struct mmsghdr *messages, unsigned count)
{
	int r;

	do
		r = result(recvmmsg(fd, messages, count,
				    MSG_DONTWAIT | MSG_TRUNC, NULL));
	while (r == -EINTR);
	return r;
}

/* SPDX-License-Identifier: MIT */
/* Out of line, as those of syscall.c, and without the C library's functions:
 * musl's sendmmsg() makes a system call for each message. */
#include "io/os/datagrams.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAF __attribute__((noinline))

static inline int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

LEAF int weft__datagrams_send(int fd, struct mmsghdr *messages, unsigned count)
{
	int r;

	do
		r = result(syscall(SYS_sendmmsg, fd, messages, count,
				   MSG_DONTWAIT | MSG_NOSIGNAL));
	while (r == -EINTR);
	return r;
}

LEAF int weft__datagrams_recv(int fd, struct mmsghdr *messages, unsigned count)
{
	int r;

	do
		r = result(syscall(SYS_recvmmsg, fd, messages, count,
				   MSG_DONTWAIT | MSG_TRUNC, NULL));
	while (r == -EINTR);
	return r;
}

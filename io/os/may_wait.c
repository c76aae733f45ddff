/* SPDX-License-Identifier: MIT */
/* Out of line, as those of syscall.c. */
#include "io/os/may_wait.h"

#include <errno.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/os/vectored.h"

#define LEAF __attribute__((noinline))

static inline long result(long r)
{
	return r < 0 ? -errno : r;
}

LEAF ssize_t weft__may_wait_transfer(bool writes, int fd,
				     const struct iovec *iov, int iov_count,
				     off_t offset, int flags)
{
	return result(
		weft__vectored(writes, fd, iov, iov_count, offset, flags));
}

LEAF int weft__may_wait_accept(int fd, struct sockaddr *ret_peer,
			       socklen_t *peer_bytes, int flags)
{
	return (int)result(
		syscall(SYS_accept4, fd, ret_peer, peer_bytes, flags));
}

LEAF int weft__may_wait_connect(int fd, const struct sockaddr *address,
				socklen_t bytes)
{
	return (int)result(syscall(SYS_connect, fd, address, bytes));
}

LEAF int weft__may_wait_openat(int dir_fd, const char *path, int flags,
			       mode_t mode)
{
	return (int)result(syscall(SYS_openat, dir_fd, path, flags, mode));
}

LEAF int weft__may_wait_openat2(int dir_fd, const char *path,
				const struct open_how *how)
{
	return (int)result(syscall(SYS_openat2, dir_fd, path, how,
				   sizeof(*how)));
}

LEAF int weft__may_wait_statx(int dir_fd, const char *path, int flags,
			      unsigned mask, struct statx *ret_status)
{
	return (int)result(syscall(SYS_statx, dir_fd, path, flags, mask,
				   ret_status));
}

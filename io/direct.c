/* SPDX-License-Identifier: MIT */
#include "io/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/fd.h"

#define LEAF __attribute__((noinline))

static inline long result(long r)
{
	return r < 0 ? -errno : r;
}

LEAF bool weft__direct_is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

LEAF int weft__direct_kind(int fd)
{
	struct stat st;
	int flags;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISSOCK(st.st_mode))
		return WEFT__FD_SOCKET;
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return lseek(fd, 0, SEEK_CUR) < 0 ? WEFT__FD_STREAM :
						    WEFT__FD_OTHER;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	return flags & O_DIRECT ? WEFT__FD_DIRECT : WEFT__FD_FILE;
}

LEAF bool weft__direct_is_fifo(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* The library's own wrappers are cancellation points, which cost. */
LEAF ssize_t weft__direct_readv(int fd, const struct iovec *iov, int iov_count,
				off_t offset)
{
	return result(syscall(SYS_preadv2, fd, iov, iov_count, (long)offset,
			      (long)(offset >> 16 >> 16), RWF_NOWAIT));
}

LEAF ssize_t weft__direct_writev(int fd, const struct iovec *iov,
				 int iov_count, off_t offset)
{
	return result(syscall(SYS_pwritev2, fd, iov, iov_count, (long)offset,
			      (long)(offset >> 16 >> 16), RWF_NOWAIT));
}

LEAF off_t weft__direct_position(int fd)
{
	return result(lseek(fd, 0, SEEK_CUR));
}

LEAF void weft__direct_move(int fd, off_t position)
{
	lseek(fd, position, SEEK_SET);
}

LEAF bool weft__direct_appends(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_APPEND);
}

LEAF ssize_t weft__direct_send(int fd, const void *buf, size_t bytes,
			       int flags)
{
	return result(syscall(SYS_sendto, fd, buf, bytes,
			      flags | MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0));
}

LEAF ssize_t weft__direct_recv(int fd, void *buf, size_t bytes, int flags)
{
	return result(syscall(SYS_recvfrom, fd, buf, bytes,
			      flags | MSG_DONTWAIT, NULL, NULL));
}

LEAF ssize_t weft__direct_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return result(syscall(SYS_sendmsg, fd, msg,
			      flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

LEAF ssize_t weft__direct_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return result(syscall(SYS_recvmsg, fd, msg, flags | MSG_DONTWAIT));
}

LEAF int weft__direct_peer(int fd, struct sockaddr_storage *ret_address,
			   socklen_t *ret_bytes)
{
	*ret_bytes = sizeof(*ret_address);
	return (int)result(getpeername(
		fd, (struct sockaddr *)ret_address, ret_bytes));
}

LEAF int weft__direct_shutdown(int fd, int how)
{
	return (int)result(shutdown(fd, how));
}

LEAF void weft__direct_close(int fd)
{
	syscall(SYS_close, fd);
}

/* An empty write would not do: its flags are not looked at. */
LEAF bool weft__direct_has_nosignal(void)
{
	struct iovec byte = { (char[]){ 0 }, 1 };
	int fds[2];
	bool has;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	has = syscall(SYS_pwritev2, fds[1], &byte, 1, -1L, -1L,
		      RWF_NOSIGNAL) == 1;
	close(fds[0]);
	close(fds[1]);
	return has;
}

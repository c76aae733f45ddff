/* SPDX-License-Identifier: MIT */
/*
 * System calls: the wrappers; syscall.h gives their rules.  LEAF keeps each one
 * out of line, with its use of errno.
 */
#include "io/os/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/os/fd_kind.h"
#include "io/os/look.h"
#include "io/os/sigpipe.h"
#include "io/os/vectored.h"

/* Linux 6.5, and newer headers. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* While others rename without a pause, one try in a hundred fails. */
enum { OPENS_MAX = 100 };

#define LEAF __attribute__((noinline))

static inline long result(long r)
{
	return r < 0 ? -errno : r;
}

/* For the calls that a signal can interrupt: it is made again then. */
#define RESULT_OF(call)                    \
	({                                 \
		long r_;                   \
                                           \
		do                         \
			r_ = result(call); \
		while (r_ == -EINTR);      \
		r_;                        \
	})

LEAF long weft__syscall_any(long number, const long words[6])
{
	return RESULT_OF(syscall(number, words[0], words[1], words[2], words[3],
				 words[4], words[5]));
}

LEAF bool weft__syscall_is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int socket_kind(int fd)
{
	int type;
	socklen_t bytes = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) < 0)
		return -errno;
	return type == SOCK_STREAM ? WEFT__FD_SOCKET : WEFT__FD_MESSAGES;
}

/* Uses statx(): this may run while the descriptor is closed, and the kernel
 * orders the two; ThreadSanitizer would report fstat() for it. */
static int stream_kind(int fd, const struct statx *status)
{
	if (S_ISCHR(status->stx_mode) && isatty(fd))
		return WEFT__FD_TERMINAL;
	return S_ISFIFO(status->stx_mode) && weft__look_is_local(status) ?
		       WEFT__FD_FIFO :
		       WEFT__FD_STREAM;
}

LEAF int weft__syscall_kind(int fd)
{
	struct statx st;
	int flags, r = weft__look_fd(fd, STATX_TYPE, &st);
	bool local;

	if (r < 0)
		return r;
	if (S_ISSOCK(st.stx_mode))
		return socket_kind(fd);
	/* On an eventfd lseek(2) succeeds, and does nothing. */
	if (!S_ISREG(st.stx_mode) && !S_ISBLK(st.stx_mode))
		return lseek(fd, 0, SEEK_CUR) < 0 ||
				       !weft__syscall_takes_offsets(fd) ?
			       stream_kind(fd, &st) :
			       WEFT__FD_OTHER;
	local = weft__look_is_local_file(&st);
	/* Some files of the kernel's are like pipes. */
	if (!local && !weft__syscall_takes_offsets(fd))
		return WEFT__FD_STREAM;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	if (flags & O_DIRECT)
		return local || S_ISBLK(st.stx_mode) ?
			       WEFT__FD_DIRECT :
			       WEFT__FD_DIRECT | WEFT__FD_NO_QUICK_READ |
				       WEFT__FD_NO_QUICK_WRITE;
	return local ? WEFT__FD_LOCAL : WEFT__FD_FILE;
}

bool weft__syscall_openat2_again(const struct open_how *how, int r,
				unsigned *tries)
{
	return r == -EAGAIN && !(how->resolve & RESOLVE_CACHED) &&
	       (how->resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) &&
	       ++*tries < OPENS_MAX;
}

LEAF int weft__syscall_openat2(int dir_fd, const char *path,
			      const struct open_how *how)
{
	unsigned tries = 0;
	int r;

	do
		r = (int)RESULT_OF(syscall(SYS_openat2, dir_fd, path, how,
					   sizeof(*how)));
	while (weft__syscall_openat2_again(how, r, &tries));
	return r;
}

LEAF ssize_t weft__syscall_readv(int fd, const struct iovec *iov, int iov_count,
				off_t offset, int flags)
{
	return RESULT_OF(
		weft__vectored(false, fd, iov, iov_count, offset, flags));
}

LEAF ssize_t weft__syscall_writev(int fd, const struct iovec *iov,
				 int iov_count, off_t offset, int flags)
{
	return RESULT_OF(
		weft__vectored(true, fd, iov, iov_count, offset, flags));
}

LEAF off_t weft__syscall_position(int fd)
{
	return (off_t)result(lseek(fd, 0, SEEK_CUR));
}

/* A read of nothing.  lseek(2) would tell it, too, but waits for a transfer at
 * the file's position. */
LEAF bool weft__syscall_takes_offsets(int fd)
{
	return weft__syscall_readv(fd, NULL, 0, 0, 0) != -ESPIPE;
}

LEAF bool weft__syscall_is_readable(int fd)
{
	struct pollfd pollfd = { fd, POLLIN, 0 };

	return poll(&pollfd, 1, 0) == 1 && (pollfd.revents & POLLIN);
}

LEAF int weft__syscall_set_flags(int fd, int flags)
{
	return (int)result(fcntl(fd, F_SETFL, flags));
}

LEAF int weft__syscall_flags(int fd)
{
	return (int)result(fcntl(fd, F_GETFL));
}

LEAF bool weft__syscall_never_blocks(int fd)
{
	int flags = weft__syscall_flags(fd);

	return flags >= 0 && (flags & O_NONBLOCK);
}

/* ---- Sending files ------------------------------------------------------ */

LEAF size_t weft__syscall_bytes_behind(int fd, off_t offset)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= offset)
		return 0;
	return (size_t)(st.st_size - offset);
}

/* Counts cached pages and pages that are being read in; -1 if that is not
 * known. */
static int64_t pages_cached(int fd, off_t offset, size_t bytes)
{
	uint64_t range[2] = { (uint64_t)offset, bytes };
	uint64_t counts[5]; /* the first: in the cache */

	if (syscall(SYS_cachestat, fd, range, counts, 0) < 0)
		return -1;
	return (int64_t)counts[0];
}

/* If it is not cached, the kernel begins to read it in. */
static bool byte_is_cached(int fd, off_t offset)
{
	struct iovec byte = { (char[]){ 0 }, 1 };

	return weft__syscall_readv(fd, &byte, 1, offset, RWF_NOWAIT) > 0;
}

/* The kernel reads ahead in order: if all pages are cached or on their way, and
 * the last one is cached, then all are.  Where pages cannot be counted (a file
 * of another user, a kernel before 6.5) samples have to do. */
LEAF bool weft__syscall_is_cached(int fd, off_t offset, size_t bytes)
{
	enum { SAMPLE_BYTES = 64 << 10 };
	off_t page = sysconf(_SC_PAGESIZE), last = offset + (off_t)bytes - 1;
	int64_t pages = last / page - offset / page + 1;
	int64_t cached = pages_cached(fd, offset, bytes);

	if (cached >= 0 && cached < pages)
		return false;
	if (cached < 0)
		for (; offset < last; offset += SAMPLE_BYTES)
			if (!byte_is_cached(fd, offset))
				return false;
	return byte_is_cached(fd, last);
}

/* A connection may break after some bytes were sent: then the call returns
 * their count, and has raised the signal as well. */
LEAF ssize_t weft__syscall_sendfile(int socket_fd, int file_fd, off_t offset,
				   size_t bytes)
{
	bool blocked = weft__sigpipe_block();
	ssize_t r = RESULT_OF(sendfile(socket_fd, file_fd, &offset, bytes));

	weft__sigpipe_restore(blocked,
			      r == -EPIPE || (r > 0 && (size_t)r < bytes));
	return r;
}

/* ---- Sockets ------------------------------------------------------------ */

LEAF ssize_t weft__syscall_send(int fd, const void *buf, size_t bytes,
			       int flags)
{
	return RESULT_OF(syscall(SYS_sendto, fd, buf, bytes,
				 flags | MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0));
}

LEAF ssize_t weft__syscall_recv(int fd, void *buf, size_t bytes, int flags)
{
	return RESULT_OF(syscall(SYS_recvfrom, fd, buf, bytes,
				 flags | MSG_DONTWAIT, NULL, NULL));
}

LEAF ssize_t weft__syscall_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return RESULT_OF(syscall(SYS_sendmsg, fd, msg,
				 flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

LEAF ssize_t weft__syscall_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return RESULT_OF(syscall(SYS_recvmsg, fd, msg, flags | MSG_DONTWAIT));
}

LEAF int weft__syscall_peer(int fd, struct sockaddr_storage *ret_address,
			   socklen_t *ret_bytes)
{
	*ret_bytes = sizeof(*ret_address);
	return (int)result(getpeername(
		fd, (struct sockaddr *)ret_address, ret_bytes));
}

LEAF bool weft__syscall_is_stream(int fd)
{
	return socket_kind(fd) == WEFT__FD_SOCKET;
}

LEAF bool weft__syscall_is_tcp(int fd)
{
	int protocol = 0;
	socklen_t bytes = sizeof(protocol);

	return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) ==
		       0 &&
	       protocol == IPPROTO_TCP;
}

LEAF bool weft__syscall_listens(int fd)
{
	int listens = 0;
	socklen_t bytes = sizeof(listens);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) ==
		       0 &&
	       listens;
}

LEAF int weft__syscall_accept(int fd, struct sockaddr *ret_peer,
			     socklen_t *peer_bytes, int flags)
{
	return (int)RESULT_OF(syscall(SYS_accept4, fd, ret_peer, peer_bytes,
				      flags));
}

LEAF int weft__syscall_connect(int fd, const struct sockaddr *address,
			      socklen_t bytes)
{
	return (int)result(syscall(SYS_connect, fd, address, bytes));
}

LEAF int weft__syscall_socket_error(int fd)
{
	int error = 0;
	socklen_t bytes = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) < 0 ?
		       -errno :
		       -error;
}

LEAF int weft__syscall_poll(int fd, int events)
{
	struct pollfd pollfd = { fd, (short)events, 0 };
	int r = (int)RESULT_OF(poll(&pollfd, 1, 0));

	return r > 0 && (pollfd.revents & POLLNVAL) ? -EBADF :
	       r > 0				    ? pollfd.revents :
						      r;
}

LEAF int weft__syscall_signal(int fd)
{
	uint64_t one = 1;
	long r = result(write(fd, &one, sizeof(one)));

	return r < 0 && r != -EAGAIN ? (int)r : 0;
}

LEAF int weft__syscall_shutdown(int fd, int how)
{
	return (int)result(shutdown(fd, how));
}

LEAF enum weft__close weft__syscall_close_kind(int fd)
{
	struct linger linger = { 0, 0 };
	socklen_t bytes = sizeof(linger);

	if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &bytes) < 0)
		return WEFT__CLOSE_ANY;
	return linger.l_onoff && linger.l_linger > 0 ? WEFT__CLOSE_LINGER :
						       WEFT__CLOSE_SOCKET;
}

LEAF int weft__syscall_close(int fd)
{
	return (int)result(syscall(SYS_close, fd));
}

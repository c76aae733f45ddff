/* SPDX-License-Identifier: MIT */
/*
 * System calls.  They never wait, and are made on the worker's thread, except
 * for sendfile(2), for preadv2(2) and pwritev2(2) without RWF_NOWAIT, and for
 * weft__syscall_any().
 *
 * They return -errno; a call that a signal interrupts is made again.  None is
 * inlined, and errno is read nowhere else: a task may resume on another thread,
 * and a compiler that saw errno on both sides of a switch would keep its
 * address.
 */
#ifndef WEFT_IO_OS_SYSCALL_H
#define WEFT_IO_OS_SYSCALL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* C libraries without preadv2() do not name it. */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

/* The call of a number (SYS_...) with up to six words.  It may wait: for the
 * threads of the pool (io/pooled.h). */
long weft__syscall_any(long number, const long words[6]);

bool weft__syscall_is_open(int fd);

/* An enum weft__fd_kind, or -EBADF. */
int weft__syscall_kind(int fd);

/* openat2(2); with RESOLVE_CACHED it does not wait. */
struct open_how;
int weft__syscall_openat2(int dir_fd, const char *path,
			 const struct open_how *how);

/* Is this result of openat2(2) to be tried again?  With ".." in a path that is
 * to stay beneath a directory, the kernel gives up with -EAGAIN if any file of
 * the machine is renamed meanwhile.  *tries is 0 at first. */
bool weft__syscall_openat2_again(const struct open_how *how, int r,
				unsigned *tries);

/* preadv2(2) and pwritev2(2); an offset of -1 is the file's position.  With
 * RWF_NOWAIT they transfer what the page cache has, or takes; otherwise they
 * return -EAGAIN, or -EOPNOTSUPP if the file system cannot tell. */
ssize_t weft__syscall_readv(int fd, const struct iovec *iov, int iov_count,
			   off_t offset, int flags);
ssize_t weft__syscall_writev(int fd, const struct iovec *iov, int iov_count,
			    off_t offset, int flags);

/* The file's position, or -errno. */
off_t weft__syscall_position(int fd);

/* False: calls with an offset give -ESPIPE. */
bool weft__syscall_takes_offsets(int fd);

/* The bytes of a regular file after an offset; 0 for other files. */
size_t weft__syscall_bytes_behind(int fd, off_t offset);

/* Is a whole range of a file in the page cache?  As far as a few system calls
 * can tell; and the kernel may evict it the next moment.  The look itself may
 * bring missing parts into the cache: after a "no" the caller does not ask
 * again about the same range. */
bool weft__syscall_is_cached(int fd, off_t offset, size_t bytes);

/* sendfile(2).  It waits for the disk if the file is not cached, and for room
 * if the socket blocks. */
ssize_t weft__syscall_sendfile(int socket_fd, int file_fd, off_t offset,
			      size_t bytes);

/* Has poll(2) anything to say of input, now? */
bool weft__syscall_is_readable(int fd);

/* Is it a listening socket? */
bool weft__syscall_listens(int fd);

/* F_SETFL: 0 or -errno. */
int weft__syscall_set_flags(int fd, int flags);

/* F_GETFL: the flags or -errno. */
int weft__syscall_flags(int fd);

/* Is it O_NONBLOCK? */
bool weft__syscall_never_blocks(int fd);

/* With MSG_DONTWAIT, and MSG_NOSIGNAL. */
ssize_t weft__syscall_send(int fd, const void *buf, size_t bytes, int flags);
ssize_t weft__syscall_recv(int fd, void *buf, size_t bytes, int flags);
ssize_t weft__syscall_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t weft__syscall_recvmsg(int fd, struct msghdr *msg, int flags);

/* The address at the other end; 0 or -errno. */
int weft__syscall_peer(int fd, struct sockaddr_storage *ret_address,
		      socklen_t *ret_bytes);

/* Is it a stream socket? */
bool weft__syscall_is_stream(int fd);

/* False for what is no socket. */
bool weft__syscall_is_tcp(int fd);

int weft__syscall_shutdown(int fd, int how);

/* accept4(2); waits if the listener has no O_NONBLOCK and no connection. */
int weft__syscall_accept(int fd, struct sockaddr *ret_peer,
			 socklen_t *peer_bytes, int flags);

/* connect(2), for a socket with O_NONBLOCK. */
int weft__syscall_connect(int fd, const struct sockaddr *address,
			  socklen_t bytes);

/* The outcome of connecting: 0, or an error. */
int weft__syscall_socket_error(int fd);

/* poll(2) without a timeout: the events that hold, or -EBADF. */
int weft__syscall_poll(int fd, int events);

/* Adds one to an eventfd; one that is full stays so. */
int weft__syscall_signal(int fd);
int weft__syscall_close(int fd);

/* Kinds of files, by what close(2) waits for. */
enum weft__close {
	WEFT__CLOSE_ANY,    /* no socket: perhaps a disk, a server, a device */
	WEFT__CLOSE_SOCKET, /* nothing */
	WEFT__CLOSE_LINGER, /* a socket: its peer */
};

enum weft__close weft__syscall_close_kind(int fd);

#endif

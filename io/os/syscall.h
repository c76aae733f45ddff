/* SPDX-License-Identifier: MIT */
/*
 * System calls that never wait, made at once on the worker's thread.
 *
 * They return -errno.  None is inlined, and errno is read nowhere else: a task
 * may resume on another thread, and a compiler that saw errno on both sides of
 * a switch would keep its address.
 */
#ifndef WEFT_IO_OS_SYSCALL_H
#define WEFT_IO_OS_SYSCALL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

bool weft__syscall_is_open(int fd);

/* An enum weft__fd_kind, or -EBADF. */
int weft__syscall_kind(int fd);

/* openat2(2); with RESOLVE_CACHED it does not wait. */
struct open_how;
int weft__syscall_openat2(int dir_fd, const char *path,
			 const struct open_how *how);

/* Whether it is a FIFO. */
bool weft__syscall_is_fifo(int fd);

/* Moves the bytes that the page cache has, or takes, immediately; else -EAGAIN,
 * or -EOPNOTSUPP if the file system cannot tell.  An offset of -1 is the file's
 * position. */
ssize_t weft__syscall_readv(int fd, const struct iovec *iov, int iov_count,
			   off_t offset);
ssize_t weft__syscall_writev(int fd, const struct iovec *iov, int iov_count,
			    off_t offset);

/* The position of a file, or -errno; moving it; whether it is written to at its
 * end only. */
off_t weft__syscall_position(int fd);
void weft__syscall_move(int fd, off_t position);
bool weft__syscall_appends(int fd);

/* How much of a regular file is behind an offset; 0 of anything else. */
size_t weft__syscall_bytes_behind(int fd, off_t offset);

/* Whether all of a stretch of a file is in the page cache, as far as can be
 * told in a few system calls; and it may be evicted the next moment.  To look
 * may bring some of what is missing into it: whoever was told no does not ask
 * again about the same stretch. */
bool weft__syscall_is_cached(int fd, off_t offset, size_t bytes);

/* sendfile(2).  It waits for the disk if the file is not cached, and for room
 * if the socket blocks. */
ssize_t weft__syscall_sendfile(int socket_fd, int file_fd, off_t offset,
			      size_t bytes);

/* Whether it is O_NONBLOCK. */
bool weft__syscall_never_blocks(int fd);

/* With MSG_DONTWAIT, and MSG_NOSIGNAL. */
ssize_t weft__syscall_send(int fd, const void *buf, size_t bytes, int flags);
ssize_t weft__syscall_recv(int fd, void *buf, size_t bytes, int flags);
ssize_t weft__syscall_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t weft__syscall_recvmsg(int fd, struct msghdr *msg, int flags);

/* The address at the other end; 0 or -errno. */
int weft__syscall_peer(int fd, struct sockaddr_storage *ret_address,
		      socklen_t *ret_bytes);

/* False for all that is none. */
bool weft__syscall_is_tcp(int fd);

int weft__syscall_shutdown(int fd, int how);
int weft__syscall_close(int fd);

/* Would close(2) of the socket wait for its peer?  False of what is none. */
bool weft__syscall_lingers(int fd);

#endif

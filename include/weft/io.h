/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: POSIX calls that suspend the task instead of blocking a thread.
 *
 * Descriptors are plain ints, from these calls or from elsewhere (pipes,
 * sockets, files, terminals), blocking or not.  A descriptor that a call
 * returns is the caller's; close it with weft_close().  Unless its comment says
 * otherwise, each call
 *
 *  - has the arguments of the POSIX call of its name, and returns the same
 *    result, but a negative errno in place of -1 and errno; also -EPERM outside
 *    a task or in a future, -EBADF, and -ENOMEM;
 *  - suspends the task while it has to wait, obeys WEFT_WITHIN and cancellation
 *    (-ETIMEDOUT, -ECANCELED), and returns only when the kernel is done with
 *    the caller's memory;
 *  - never raises SIGPIPE, and goes on after a signal that interrupts it;
 *  - may transfer fewer bytes than asked for, and returns their number.
 *
 * Several tasks may use a descriptor at the same time.  Close it only with
 * weft_close(), which ends the calls that wait on it.
 *
 * Several runtimes may use a descriptor, too.  A close by one of them cannot
 * end the calls of another, and is refused while that one waits there.  A
 * number may become that of another file in any way, also by close(2), dup2(2)
 * or the close by another runtime, when no task is in a call on it.
 */
#ifndef WEFT_IO_H
#define WEFT_IO_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <weft/addr.h>
#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Read and write at the descriptor's position.  A read returns 0 at the end of
 * the stream or file.  At the position of a file each call is atomic, as
 * read(2) and write(2) are, beside those of tasks, threads and other processes.
 * If it has to wait, it does so on a thread of the pool of weft_blocking(): it
 * can be interrupted only until it has begun there, and weft_close() waits for
 * it. */
WEFT_API ssize_t weft_read(int fd, void *buf, size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_readv(int fd, const struct iovec *iov,
			    int iov_count) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_write(int fd, const void *buf,
			    size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_writev(int fd, const struct iovec *iov,
			     int iov_count) WEFT_WARN_UNUSED;

/* Read and write at an offset; a negative offset gives -EINVAL, a descriptor
 * without a position -ESPIPE.  Data in the page cache is copied without
 * suspending, except for an occasional yield.  Where the file system does not
 * say whether a call would wait, that has a thread as well. */
WEFT_API ssize_t weft_pread(int fd, void *buf, size_t bytes,
			    off_t offset) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_pwrite(int fd, const void *buf, size_t bytes,
			     off_t offset) WEFT_WARN_UNUSED;

/* Loop until all bytes are moved.  Return 0 or the first error; *ret_done
 * always receives the number of bytes moved, on an error, too (ret_done may be
 * NULL).  The reading calls return -ENODATA if the stream or file ends early,
 * the writing ones -EIO if no byte can be written; weft_send_all() with
 * MSG_DONTWAIT returns -EAGAIN if the socket's buffer is full. */
WEFT_API int weft_read_all(int fd, void *buf, size_t bytes, size_t *ret_done);
WEFT_API int weft_write_all(int fd, const void *buf, size_t bytes,
			    size_t *ret_done);
WEFT_API int weft_pread_all(int fd, void *buf, size_t bytes, off_t offset,
			    size_t *ret_done);
WEFT_API int weft_pwrite_all(int fd, const void *buf, size_t bytes,
			     off_t offset, size_t *ret_done);
WEFT_API int weft_send_all(int fd, const void *buf, size_t bytes, int flags,
			   size_t *ret_done);

/* Sockets; flags are the MSG_* of recv(2) and send(2).  With MSG_DONTWAIT the
 * calls return -EAGAIN instead of waiting, though they may yield now and then.
 * Descriptors received by weft_recvmsg() are close-on-exec. */
WEFT_API ssize_t weft_recv(int fd, void *buf, size_t bytes,
			   int flags) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_send(int fd, const void *buf, size_t bytes,
			   int flags) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_recvmsg(int fd, struct msghdr *msg,
			      int flags) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_sendmsg(int fd, const struct msghdr *msg,
			      int flags) WEFT_WARN_UNUSED;

/* The same with the address of the other side; a socket of datagrams need not
 * be connected.  ret_peer may be NULL; else it receives the sender's address,
 * on success only: no address, if the sender has none (an unbound Unix socket,
 * the peer of a stream socket) or one of another family.  addr may be NULL, for
 * the peer of a connected socket; it is not needed after the call.  A datagram
 * that does not fit into buf is cut off; with MSG_TRUNC the result is its whole
 * length.  Suspend.  Errors: those of recvfrom(2) and sendto(2), and -EINVAL
 * (addr is no address). */
WEFT_API ssize_t weft_recvfrom(int fd, void *buf, size_t bytes, int flags,
			       struct weft_addr *ret_peer) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_sendto(int fd, const void *buf, size_t bytes, int flags,
			     const struct weft_addr *addr) WEFT_WARN_UNUSED;

/* Takes the next connection of a listening socket.  The new descriptor is the
 * caller's, and close-on-exec.  ret_peer may be NULL; else it receives the
 * peer's address.  Connections that no call asks for stay in the socket's
 * backlog, for later calls and for other processes.  A call that is interrupted
 * at the moment a connection comes returns that connection.  Waiters are served
 * in the order in which their requests reached the kernel.  While the
 * process is out of descriptors (EMFILE, ENFILE), the call waits until some are
 * free, without spinning.  Errors of a single connection (ECONNABORTED and the
 * like) are skipped; other errors are those of accept(2). */
WEFT_API int weft_accept(int fd, struct weft_addr *ret_peer) WEFT_WARN_UNUSED;

/* Connects a socket.  If the socket is connecting already, because an earlier
 * call was interrupted or it does not block, the call waits for that.  Returns
 * 0, -EINVAL (NULL or no address), -ECONNREFUSED, -ETIMEDOUT (of the kernel,
 * after about two minutes, or of a WEFT_WITHIN), or another error of
 * connect(2). */
WEFT_API int weft_connect(int fd, const struct weft_addr *addr)
	WEFT_WARN_UNUSED;

/* Ends one direction of a socket, or both: SHUT_RD, SHUT_WR, SHUT_RDWR.  Does
 * not suspend; also works in a cancelled task and in a future. */
WEFT_API int weft_shutdown(int fd, int how);

/*
 * Closes the descriptor.  First ends every call that waits on it: those return
 * -ECANCELED, or their result.  Suspends, but ignores deadlines and
 * cancellation: it is always done in full, and except for -EPERM and -EBUSY the
 * descriptor is closed whatever is returned.  Returns 0, -EBADF (not open, or
 * another task is closing it), -EBUSY (tasks of another runtime wait on it, or
 * a stream owns it there: nothing was done), or a write-back error.  A stream's
 * descriptor ends the process with a message: see weft_stream_close().
 *
 * Outside a task the call returns -EPERM and closes nothing; use close(2) on
 * descriptors that no task uses.
 */
WEFT_API int weft_close(int fd);

/* Waits until one of the events holds: POLLIN, POLLOUT and the like.  Returns
 * those that hold, also POLLERR and POLLHUP.  For descriptors that another
 * library reads, and for those of signalfd(2) and the like. */
WEFT_API int weft_poll(int fd, short events) WEFT_WARN_UNUSED;

/* Files.  The descriptors that these calls open are always close-on-exec; mode
 * is used with O_CREAT.  A file of a local file system whose names are in the
 * kernel's cache is opened without suspending. */
WEFT_API int weft_open(const char *path, int flags,
		       mode_t mode) WEFT_WARN_UNUSED;
WEFT_API int weft_openat(int dir_fd, const char *path, int flags,
			 mode_t mode) WEFT_WARN_UNUSED;

/* The same with openat2(2)'s struct open_how of <linux/openat2.h>, and its
 * size: for example, with RESOLVE_BENEATH no path leads out of a directory.  As
 * strict as that call: -EINVAL for flags or a mode without a meaning, -E2BIG
 * for a larger struct whose additional bytes are not zero.  With O_NONBLOCK,
 * and without flags that create or truncate, it does not suspend if all names
 * of the path are in the kernel's cache. */
struct open_how;
WEFT_API int weft_openat2(int dir_fd, const char *path,
			  const struct open_how *how,
			  size_t how_bytes) WEFT_WARN_UNUSED;

/* As stat(2), fstat(2), fsync(2) and fdatasync(2), which suspend here; the
 * first two do not for what a local file system has in the kernel's caches.  A
 * NULL pointer gives -EFAULT. */
WEFT_API int weft_stat(const char *path, struct stat *ret_stat)
	WEFT_WARN_UNUSED;
WEFT_API int weft_fstat(int fd, struct stat *ret_stat) WEFT_WARN_UNUSED;
WEFT_API int weft_fsync(int fd);
WEFT_API int weft_fdatasync(int fd);

/*
 * Sends bytes of a file, from offset on, to a socket; the file's position does
 * not change.  Suspends.  Returns the number of bytes sent, fewer than asked
 * for only at the end of the file, or the first error; *ret_done always
 * receives the number of bytes sent (ret_done may be NULL).
 *
 * To a stream socket in O_NONBLOCK mode, data in the page cache is sent without
 * a copy, by sendfile(2).  In all other cases it is copied through a buffer:
 * small files, data that must come from the disk, and sockets of other kinds or
 * modes, for which sendfile(2) would hold up the thread.
 */
WEFT_API ssize_t weft_sendfile(int socket_fd, int file_fd, off_t offset,
			       size_t bytes, size_t *ret_done);

/*
 * Copies from one descriptor to another, until bytes_max (UINT64_MAX: no limit)
 * or the end: pipes, stream sockets, files at their positions, terminals,
 * devices.  Suspends.  Returns 0, or the first error of either; *ret_done (may
 * be NULL) always receives the bytes written.  -EINVAL: one of both is no
 * stream of bytes (a datagram socket, an eventfd, ...), both are ends of one
 * pipe, or parts of one file that overlap; -EISDIR.
 *
 * If ret_taken is NULL, no byte is taken from the source that is not written;
 * only of terminals and devices, which cannot be looked at, an error may lose
 * up to 4 KiB that were read.  Otherwise *ret_taken always receives the bytes
 * taken, and the call may take ahead between sockets, at most what a pipe
 * holds: that is faster, and loses *ret_taken - *ret_done bytes on an error.
 *
 * Without a copy through memory go pipes, and sockets in O_NONBLOCK mode to and
 * from pipes, or to others with ret_taken (splice(2)); files to sockets, as by
 * weft_sendfile(); files to files (copy_file_range(2)).  No other task reads
 * from the source, or moves the position of a file, during the call.
 *
 * The call waits for input or for room, at one end.  A close of that end is
 * noticed at once, one of the other only when the wait is over (-ECANCELED
 * both).  So a program shuts sockets down, or cancels the task, and closes both
 * ends after the call.
 */
WEFT_API int weft_copy(int to_fd, int from_fd, uint64_t bytes_max,
		       uint64_t *ret_done, uint64_t *ret_taken);

WEFT_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: POSIX calls that suspend the task instead of blocking a thread.
 *
 * Descriptors are plain ints, your own or from elsewhere (pipes, sockets,
 * files, terminals), blocking or not.  Unless a line says otherwise each call
 *
 *  - is shaped like the POSIX call of its name, and returns what that returns
 *    with a negative errno in place of -1 and errno;
 *  - suspends the task while it has to wait, obeys WEFT_WITHIN and
 *    cancellation, and returns only when the kernel is done with your memory;
 *  - never raises SIGPIPE;
 *  - transfers what it can: fewer bytes than asked is success.
 *
 * Any number of tasks may use a descriptor at once.  Close it with weft_close()
 * only, so that nobody is left waiting on it.
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

/* Reads at the descriptor's position.  0 is end of stream. */
WEFT_API ssize_t weft_read(int fd, void *buf, size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_readv(int fd, const struct iovec *iov,
			    int iov_count) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_write(int fd, const void *buf,
			    size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_writev(int fd, const struct iovec *iov,
			     int iov_count) WEFT_WARN_UNUSED;

/* Reads and writes at an offset; data in the page cache is copied at once,
 * without suspending (but for a yield now and then). */
WEFT_API ssize_t weft_pread(int fd, void *buf, size_t bytes,
			    off_t offset) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_pwrite(int fd, const void *buf, size_t bytes,
			     off_t offset) WEFT_WARN_UNUSED;

/*
 * Loops until all bytes are moved.  0, or the first error; *ret_done (may be
 * NULL) always gets the bytes moved.  weft_read_all() gives -ENODATA when the
 * stream ends early; weft_send_all() with MSG_DONTWAIT -EAGAIN when the buffer
 * is full.
 */
WEFT_API int weft_read_all(int fd, void *buf, size_t bytes, size_t *ret_done);
WEFT_API int weft_write_all(int fd, const void *buf, size_t bytes,
			    size_t *ret_done);
WEFT_API int weft_pread_all(int fd, void *buf, size_t bytes, off_t offset,
			    size_t *ret_done);
WEFT_API int weft_pwrite_all(int fd, const void *buf, size_t bytes,
			     off_t offset, size_t *ret_done);
WEFT_API int weft_send_all(int fd, const void *buf, size_t bytes, int flags,
			   size_t *ret_done);

/* Sockets; flags are the MSG_* of recv(2) and send(2).  With MSG_DONTWAIT they
 * give -EAGAIN instead of waiting, though they may still yield now and then. */
WEFT_API ssize_t weft_recv(int fd, void *buf, size_t bytes,
			   int flags) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_send(int fd, const void *buf, size_t bytes,
			   int flags) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_recvmsg(int fd, struct msghdr *msg,
			      int flags) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_sendmsg(int fd, const struct msghdr *msg,
			      int flags) WEFT_WARN_UNUSED;

/*
 * Takes the next connection of a listening socket; the new descriptor is
 * close-on-exec.  ret_peer may be NULL.  While the process is out of
 * descriptors (EMFILE, ENFILE) it waits until some are free, without spinning.
 * Errors that concern one connection only (ECONNABORTED and its kin) are
 * skipped.
 */
WEFT_API int weft_accept(int fd, struct weft_addr *ret_peer) WEFT_WARN_UNUSED;

/* Connects a socket; one that is connecting already, since a call for it was
 * interrupted or since it does not block, is waited for.  0, or -ECONNREFUSED,
 * -ETIMEDOUT (the kernel's, after two minutes or so, unless a WEFT_WITHIN ends
 * it before), ... */
WEFT_API int weft_connect(int fd, const struct weft_addr *addr)
	WEFT_WARN_UNUSED;

/* Ends one direction, or both: SHUT_RD, SHUT_WR, SHUT_RDWR. */
WEFT_API int weft_shutdown(int fd, int how);

/*
 * Closes the descriptor.  First ends every call that waits on it: they return
 * -ECANCELED (or what they had).  Always done in full, cancelled or not; the
 * descriptor is gone whatever is returned.  0, -EBADF, or a write-back error.
 * Outside of tasks it is close(2) that closes what no task uses: this call does
 * nothing there but return -EPERM.
 */
WEFT_API int weft_close(int fd);

/* Waits for readiness: POLLIN, POLLOUT, ...  Returns the events that hold.  For
 * descriptors that another library reads, and for signalfd(2) and its kin.  Not
 * for a listener of weft_accept(), which takes connections ahead. */
WEFT_API int weft_poll(int fd, short events) WEFT_WARN_UNUSED;

/* Files.  open is close-on-exec always; mode counts with O_CREAT. */
WEFT_API int weft_open(const char *path, int flags,
		       mode_t mode) WEFT_WARN_UNUSED;
WEFT_API int weft_openat(int dir_fd, const char *path, int flags,
			 mode_t mode) WEFT_WARN_UNUSED;

/*
 * The same with openat2(2)'s struct open_how of <linux/openat2.h>, and its
 * size: with RESOLVE_BENEATH no path leads out of a directory.  As strict as
 * that call: -EINVAL for flags or a mode that mean nothing, -E2BIG for what a
 * newer program knows.  With O_NONBLOCK, and where nothing is created or cut,
 * it does not suspend if all names of the path are in the kernel's cache.
 */
struct open_how;
WEFT_API int weft_openat2(int dir_fd, const char *path,
			  const struct open_how *how,
			  size_t how_bytes) WEFT_WARN_UNUSED;

WEFT_API int weft_stat(const char *path, struct stat *ret_stat)
	WEFT_WARN_UNUSED;
WEFT_API int weft_fstat(int fd, struct stat *ret_stat) WEFT_WARN_UNUSED;
WEFT_API int weft_fsync(int fd);
WEFT_API int weft_fdatasync(int fd);

/*
 * Sends bytes of a file, from offset on, to a socket; the file's position stays
 * as it is.  Returns the bytes sent: fewer than asked only at the end of the
 * file.  On error *ret_done (may be NULL) tells how far it came, as with the
 * _all calls.
 *
 * To a stream socket in O_NONBLOCK mode, what is in the page cache is sent
 * without being copied, by sendfile(2).  All else is copied through a buffer:
 * small files, what has to come from the disk, and what is sent to any other
 * socket, for there sendfile(2) would hold up the thread.
 */
WEFT_API ssize_t weft_sendfile(int socket_fd, int file_fd, off_t offset,
			       size_t bytes, size_t *ret_done);

WEFT_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Splice - the system calls that move bytes between two descriptors.
 *
 * As those of syscall.h: -errno, and out of line.  A socket has no other word
 * than its own O_NONBLOCK: without that, these calls may wait for it.
 */
#ifndef WEFT_IO_OS_SPLICE_H
#define WEFT_IO_OS_SPLICE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A pipe that does not block. */
int weft__splice_pipe(int ret_fds[2]);

/* splice(2); one of both is a pipe, and the other is no file.  Raises no
 * SIGPIPE. */
ssize_t weft__splice(int from, int to, size_t bytes);

/* The same into a pipe of the caller's own, which has a reader. */
ssize_t weft__splice_in(int from, int own, size_t bytes);

/* tee(2) into such a pipe. */
ssize_t weft__splice_tee(int from, int own, size_t bytes);

/* Reads that many bytes, which are in the pipe: 0 or -EIO. */
int weft__splice_read(int own, void *buf, size_t bytes);

/* copy_file_range(2); waits for the disk.  Moves the offsets. */
ssize_t weft__splice_range(int from, int64_t *offset, int to,
			   int64_t *to_offset, size_t bytes);

/* Sets the file's position: 0 or -errno. */
int weft__splice_seek(int fd, off_t offset);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * System calls that may wait, for threads of the blocking pool.  They return
 * -errno, and -EINTR when a signal interrupts them.
 */
#ifndef WEFT_IO_OS_MAY_WAIT_H
#define WEFT_IO_OS_MAY_WAIT_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "io/os/statx.h"

struct open_how;

/* preadv2(2) or pwritev2(2); an offset of -1 is the file's position. */
ssize_t weft__may_wait_transfer(bool writes, int fd, const struct iovec *iov,
				int iov_count, off_t offset, int flags);

int weft__may_wait_accept(int fd, struct sockaddr *ret_peer,
			  socklen_t *peer_bytes, int flags);
int weft__may_wait_connect(int fd, const struct sockaddr *address,
			   socklen_t bytes);
int weft__may_wait_openat(int dir_fd, const char *path, int flags, mode_t mode);
int weft__may_wait_openat2(int dir_fd, const char *path,
			   const struct open_how *how);
int weft__may_wait_statx(int dir_fd, const char *path, int flags,
			 unsigned mask, struct statx *ret_status);

#endif

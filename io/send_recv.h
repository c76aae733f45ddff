/* SPDX-License-Identifier: MIT */
/*
 * Calls that are done in another way where the descriptor is a socket's.
 */
#ifndef WEFT_IO_SEND_RECV_H
#define WEFT_IO_SEND_RECV_H

#include <sys/types.h>
#include <sys/uio.h>

/* write() for a socket: SIGPIPE is not raised. */
ssize_t weft__socket_writev(int fd, const struct iovec *iov, int iov_count);

#endif

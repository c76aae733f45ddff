/* SPDX-License-Identifier: MIT */
/*
 * Calls that rw.c makes in another way if the descriptor is a socket.
 */
#ifndef WEFT_IO_SEND_RECV_H
#define WEFT_IO_SEND_RECV_H

#include <sys/types.h>
#include <sys/uio.h>

/* write() for a socket: SIGPIPE is not raised. */
ssize_t weft__socket_writev(int fd, const struct iovec *iov, int iov_count);

#endif

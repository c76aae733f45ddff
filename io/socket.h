/* SPDX-License-Identifier: MIT */
/*
 * What writing to a descriptor of unknown kind asks of sockets.
 */
#ifndef WEFT_IO_SOCKET_H
#define WEFT_IO_SOCKET_H

#include <sys/types.h>
#include <sys/uio.h>

/* write() for a socket: SIGPIPE is not raised. */
ssize_t weft__socket_writev(int fd, const struct iovec *iov, int iov_count);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_REQUEST_CLOSE_H
#define WEFT_IO_REQUEST_CLOSE_H

/* weft_close() through a system call, for a socket: it has nothing to write
 * back, and if it lingers it would hold up this thread through the ring,
 * too. */
int weft__socket_close(int fd);

/* A close by this thread takes as long as copying that many bytes. */
enum { WEFT__CLOSE_AS_BYTES = 128 << 10 };

#endif

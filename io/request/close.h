/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_REQUEST_CLOSE_H
#define WEFT_IO_REQUEST_CLOSE_H

/* weft_close(), by a call: there is nothing to write back, and a linger would
 * hold up this thread through the ring, too. */
int weft__socket_close(int fd);

#endif

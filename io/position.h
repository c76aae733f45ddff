/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_POSITION_H
#define WEFT_IO_POSITION_H

#include "io/ring/request.h"

struct weft__fd;

/* Carries out a read or write at a file's position that may have to wait.  The
 * call has begun, and the descriptor was found to be a file.  Returns its
 * result, or -EBADF (being closed), -ECANCELED, -ETIMEDOUT. */
ssize_t weft__position_run(struct weft__fd *entry,
			   const struct weft__request *request);

#endif

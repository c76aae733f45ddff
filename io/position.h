/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_POSITION_H
#define WEFT_IO_POSITION_H

#include "io/ring/request.h"

struct weft__fd;

/* Carries out a read or write of a file that may have to wait where only a
 * thread can, or that is at the file's position.  The call has begun, and the
 * descriptor was found to be a file.  in_line: behind others that are made so
 * on the same descriptor; for what waits for them in any case.  Returns its
 * result, or -EBADF (being closed), -ECANCELED, -ETIMEDOUT. */
ssize_t weft__position_run(struct weft__fd *entry,
			   const struct weft__request *request, bool in_line);

/* Around other work of the running task on a file, in the pool: a close of the
 * descriptor waits for its end.  0, or -EBADF (being closed). */
int weft__position_enter(struct weft__fd *entry, int fd);
void weft__position_leave(struct weft__fd *entry);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Copy ends - the two descriptors of weft_copy(), and what they are.
 */
#ifndef WEFT_IO_COPY_END_H
#define WEFT_IO_COPY_END_H

#include <stdbool.h>
#include <stdint.h>

#include "io/os/statx.h"
#include "io/request/fd_table.h"

struct weft__worker;

enum weft__copy_what {
	WEFT__COPY_FILE, /* has offsets; blocks of a disk too */
	WEFT__COPY_PIPE,
	WEFT__COPY_SOCKET,
	WEFT__COPY_DEVICE,
};

struct weft__copy_end {
	int fd;
	enum weft__copy_what what;
	struct weft__fd *entry;
	uint32_t closes; /* at the beginning of the call */
	struct statx status;
};

/* Finds out all but `fd`.  mode: O_RDONLY or O_WRONLY.  0, or -EBADF, -EINVAL
 * (no stream of bytes), -EISDIR, -ENOMEM. */
int weft__copy_end_open(struct weft__worker *worker, struct weft__copy_end *end,
			int mode);

/* Are both the same file, or ends of the same pipe? */
bool weft__copy_end_is(const struct weft__copy_end *a,
		       const struct weft__copy_end *b);

/* Has a close of the number begun since then?  See weft__call_closes(). */
static inline bool weft__copy_end_closed(const struct weft__copy_end *end)
{
	return weft__fd_closes_long(end->entry) != end->closes;
}

#endif

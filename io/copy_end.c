/* SPDX-License-Identifier: MIT */
#include "io/copy_end.h"

#include <errno.h>
#include <fcntl.h>

#include "io/os/look.h"
#include "io/request/call.h"

static int what_of(struct weft__copy_end *end)
{
	int r = weft__look_fd(end->fd, STATX_TYPE | STATX_INO | STATX_SIZE,
			      &end->status);

	if (r < 0)
		return r;
	switch (end->status.stx_mode & S_IFMT) {
	case S_IFSOCK:
		end->what = WEFT__COPY_SOCKET;
		return weft__syscall_is_stream(end->fd) ? 0 : -EINVAL;
	case S_IFIFO:
		end->what = WEFT__COPY_PIPE;
		return 0;
	case S_IFREG:
	case S_IFBLK:
		end->what = weft__syscall_takes_offsets(end->fd) ?
				    WEFT__COPY_FILE :
				    WEFT__COPY_DEVICE;
		return 0;
	case S_IFDIR:
		return -EISDIR;
	case S_IFCHR:
		end->what = WEFT__COPY_DEVICE;
		return 0;
	default:
		/* An eventfd or the like. */
		return -EINVAL;
	}
}

/* A wait for the other direction never ends. */
int weft__copy_end_open(struct weft__worker *worker, struct weft__copy_end *end,
			int mode)
{
	int flags, r = weft__call_entry(worker, end->fd, &end->entry);

	if (r < 0)
		return r;
	end->closes = weft__fd_closes_long(end->entry);
	flags = weft__syscall_flags(end->fd);
	if (flags < 0)
		return flags;
	if ((flags & O_PATH) || ((flags & O_ACCMODE) != O_RDWR &&
				 (flags & O_ACCMODE) != mode))
		return -EBADF;
	return what_of(end);
}

bool weft__copy_end_is(const struct weft__copy_end *a,
		       const struct weft__copy_end *b)
{
	return a->status.stx_ino == b->status.stx_ino &&
	       a->status.stx_dev_major == b->status.stx_dev_major &&
	       a->status.stx_dev_minor == b->status.stx_dev_minor;
}

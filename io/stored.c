/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing what is stored in memory.
 *
 *	tmpfs       a transfer waits for no disk, except for what was swapped
 *	            out, as all of the process's memory may be; a write waits
 *	            for another process that changes the file
 *	an overlay  the pages of the layer's file are in the page cache or not
 *	            (io/resident.h)
 *
 * The kind of a descriptor is a hint: each transfer first looks at the file
 * itself.
 */
#include "io/stored.h"

#include <errno.h>
#include <fcntl.h>

#include "io/os/syscall.h"

static int look(int fd, struct statx *ret_status)
{
	int r = weft__look_fd(fd, WEFT__STORED_MASK, ret_status);

	return r == 0 && !weft__look_is_local_file(ret_status) ? -EOPNOTSUPP :
								 r;
}

int weft__stored_kind(const struct statx *status, uint64_t flags)
{
	if (!weft__look_is_local_file(status) || (flags & O_DIRECT))
		return WEFT__FD_UNKNOWN;
	return weft__look_storage(-1, status) == WEFT__STORAGE_DISK ?
		       WEFT__FD_LOCAL :
		       WEFT__FD_STORED;
}

/* Cuts a read to what is in the page cache, which ends with a page.  False:
 * nothing is.  A read to the end of the file keeps its length, which O_DIRECT
 * may need; what others append meanwhile is in the cache. */
static bool cut_to_resident(struct weft__request *read,
			    const struct statx *status)
{
	off_t offset = read->offset;
	size_t bytes;

	if (weft__request_has_iovecs(read))
		return false;
	if (offset < 0)
		offset = weft__syscall_position(read->fd);
	/* There is nothing to read. */
	if (offset >= (off_t)status->stx_size)
		return true;
	bytes = weft__resident(read->fd, status, offset, read->bytes);
	if (bytes == 0)
		return false;
	if (offset + (off_t)bytes < (off_t)status->stx_size)
		read->bytes = (uint32_t)bytes;
	return true;
}

ssize_t weft__stored_read(const struct weft__request *request)
{
	struct weft__request read = *request;
	struct statx status;
	int r = look(read.fd, &status);

	if (r < 0)
		return r;
	switch (weft__look_storage(read.fd, &status)) {
	case WEFT__STORAGE_DISK:
		return -EOPNOTSUPP;
	case WEFT__STORAGE_LAYERED:
		if (!cut_to_resident(&read, &status))
			return -EAGAIN;
		break;
	case WEFT__STORAGE_MEMORY:
		break;
	}
	return weft__request_wait(&read);
}

/* More would hold the worker for too long. */
#define WRITE_BYTES_MAX (1u << 20)

ssize_t weft__stored_write(const struct weft__request *request)
{
	struct statx status;
	int r = look(request->fd, &status);

	if (r < 0)
		return r;
	if (!weft__request_has_iovecs(request) &&
	    request->bytes > WRITE_BYTES_MAX)
		return -EAGAIN;
	return weft__look_storage(request->fd, &status) ==
			       WEFT__STORAGE_MEMORY ?
		       weft__request_wait(request) :
		       -EOPNOTSUPP;
}

bool weft__stored_has(int fd, off_t offset, size_t bytes)
{
	struct statx status;

	if (look(fd, &status) < 0)
		return false;
	switch (weft__look_storage(fd, &status)) {
	case WEFT__STORAGE_MEMORY:
		return true;
	case WEFT__STORAGE_LAYERED:
		return weft__resident(fd, &status, offset, bytes) == bytes;
	case WEFT__STORAGE_DISK:
		break;
	}
	return false;
}

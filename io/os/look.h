/* SPDX-License-Identifier: MIT */
/*
 * Look - what can be said of a file without waiting for its file system.
 *
 * A file system is *local* if, of what is in the kernel's caches, no call waits
 * for a server: not for a name, not for the status, not for opening.  The mark
 * is that it knows the attribute "nodump" of chattr(1), which file systems on a
 * disk and tmpfs have.  An overlay has the mark of the layer that holds the
 * file.  The file systems of clusters have it too, but look at no name in the
 * cache alone, so that weft__look_path() refuses theirs.
 *
 * Like syscall.h: -errno, no look waits, and each is out of line.  *ret_status
 * is what the kernel has in memory, which is the truth if the file is local.
 */
#ifndef WEFT_IO_OS_LOOK_H
#define WEFT_IO_OS_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "io/os/statx.h"

struct open_how;

/* For a mask: the number of the mount, which no other mount ever gets (since
 * Linux 6.8). */
#define WEFT__LOOK_MOUNT 0x4000u

static inline bool weft__look_is_local(const struct statx *status)
{
	return status->stx_attributes_mask & STATX_ATTR_NODUMP;
}

static inline bool weft__look_is_local_file(const struct statx *status)
{
	return S_ISREG(status->stx_mode) && weft__look_is_local(status);
}

/* Looks at the file that a path names, if all its names are cached (-EAGAIN
 * otherwise).  Does not open the file, so no other end of a FIFO is met.  Of
 * `how` only O_NOFOLLOW and `resolve` count.  mask: STATX_ flags. */
int weft__look_path(int dir_fd, const char *path, const struct open_how *how,
		    unsigned mask, struct statx *ret_status);

int weft__look_fd(int fd, unsigned mask, struct statx *ret_status);

/* How a local file is stored, as far as it matters here. */
enum weft__storage {
	WEFT__STORAGE_DISK,    /* calls with RWF_NOWAIT tell what is cached */
	WEFT__STORAGE_MEMORY,  /* tmpfs: nothing waits */
	WEFT__STORAGE_LAYERED, /* an overlay: io/resident.h tells */
};

/* Of a local file.  Asks once for each mount: fd may be -1 if it has no answer
 * yet, which gives DISK.  status: with WEFT__LOOK_MOUNT in its mask. */
enum weft__storage weft__look_storage(int fd, const struct statx *status);

/* How many bytes of a file, from an offset on, are in the page cache and can be
 * read without waiting for the disk; at most a few hundred KiB.  For a layered
 * file, of which cachestat(2) knows nothing.  0 as well if the kernel does not
 * tell, as for files of others.  file_bytes: the file's size.  The kernel may
 * evict the next moment what it has: a read then waits for the disk once. */
size_t weft__look_resident(int fd, off_t offset, size_t bytes,
			   off_t file_bytes);

#endif

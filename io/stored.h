/* SPDX-License-Identifier: MIT */
/*
 * Stored - reading from a local file system (io/os/look.h) without calls that
 * tell whether they would wait: tmpfs and overlays have no RWF_NOWAIT.  Writing
 * to tmpfs, too.
 */
#ifndef WEFT_IO_STORED_H
#define WEFT_IO_STORED_H

#include "io/os/fd_kind.h"
#include "io/resident.h"
#include "io/ring/request.h"

/* For the mask of a look. */
#define WEFT__STORED_MASK (STATX_TYPE | WEFT__RESIDENT_MASK)

/* The kind of a local file that was just opened with such flags, as far as it
 * is known. */
int weft__stored_kind(const struct statx *status, uint64_t flags);

/* Carries out a READ or READV, or a part of a READ, if it does not wait for a
 * disk.  -EAGAIN if it may; -EOPNOTSUPP if the file is not local and of tmpfs
 * or an overlay. */
ssize_t weft__stored_read(const struct weft__request *request);

/* Carries out a WRITE or WRITEV to a file of tmpfs.  -EAGAIN if it is a long
 * one, -EOPNOTSUPP of another file. */
ssize_t weft__stored_write(const struct weft__request *request);

/* Is a whole range of a file of tmpfs or an overlay in memory?  False for other
 * files. */
bool weft__stored_has(int fd, off_t offset, size_t bytes);

#endif

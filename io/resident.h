/* SPDX-License-Identifier: MIT */
/*
 * Resident - which bytes of an overlay's file are in the page cache, so that
 * reading them waits for no disk.
 *
 * The kernel tells by a mapping (io/os/look.h), which takes longer than reading
 * a few KiB.  So a range of at most 128 KiB that was found there is believed to
 * stay for 10 ms, at most a tick of the kernel more.
 *
 * A wrong answer costs a read of the range from the disk, as if the kernel had
 * evicted it between the look and the read.
 */
#ifndef WEFT_IO_RESIDENT_H
#define WEFT_IO_RESIDENT_H

#include <stddef.h>
#include <sys/types.h>

#include "io/os/look.h"

/* For the mask of the status. */
#define WEFT__RESIDENT_MASK (STATX_INO | STATX_SIZE | WEFT__LOOK_MOUNT)

/* How many of `bytes` from the offset on are in the cache, at most a few
 * hundred KiB; 0 behind the end of the file.  status: the file's. */
size_t weft__resident(int fd, const struct statx *status, off_t offset,
		      size_t bytes);

#endif

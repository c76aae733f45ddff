/* SPDX-License-Identifier: MIT */
/*
 * Files - a table of descriptors that a ring knows.  A request that names its
 * place in the table costs the kernel no look at the process's own table, and
 * no count on the file: that is as much as what weft does for a request.
 *
 * For streams, which know when their descriptor is closed; and for those that
 * are busy, as it takes two system calls to enter one and to take it out.
 *
 * Rejected: kernels before 6.14.  Theirs kept a file that was taken out open
 * until all older requests had ended, of whatever file; one that waits for
 * input may take for ever.
 */
#ifndef WEFT_IO_REQUEST_FIXED_FILES_H
#define WEFT_IO_REQUEST_FIXED_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "io/ring/ring.h"
#include "runtime/base/lock.h"

enum { WEFT__FIXED_FILES_MAX = 4096 };

struct weft__fixed_files {
	struct weft__lock lock;
	bool opened;	     /* under lock; or it was tried */
	uint16_t *free;	     /* under lock: places */
	uint32_t free_count; /* under lock */
};

/* From any worker, unless the ring is for one thread alone: a place for the
 * descriptor, or -1 if there is none. */
int weft__fixed_files_enter(struct weft__fixed_files *files,
			    struct weft__ring *ring, int fd);

/* Likewise: nothing that names the place is under way.  The file is closed if
 * that was all that held it open. */
void weft__fixed_files_leave(struct weft__fixed_files *files,
			     struct weft__ring *ring, int place);

/* Before the ring is closed, by who does that.  Files are closed that nothing
 * else holds open, nor a request that is under way. */
void weft__fixed_files_close(struct weft__fixed_files *files,
			     struct weft__ring *ring);

#endif

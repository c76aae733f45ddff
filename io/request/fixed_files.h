/* SPDX-License-Identifier: MIT */
/*
 * Fixed files - a table of descriptors that a ring knows.  For a request that
 * names its place in the table the kernel neither looks at the process's own
 * table nor counts a reference to the file: this saves as much time as weft
 * itself takes for a request.
 *
 * The table is for streams, which know when their descriptor is closed; and for
 * busy ones, because entering a descriptor and taking it out are two system
 * calls.
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
	bool opened;	     /* under lock: opening was tried */
	uint16_t *free;	     /* under lock: places */
	uint32_t free_count; /* under lock */
};

/* From any worker, unless the ring is for one thread alone: enters the
 * descriptor.  Returns its place, or -1 if there is none. */
int weft__fixed_files_enter(struct weft__fixed_files *files,
			    struct weft__ring *ring, int fd);

/* From any worker likewise, when no request that names the place is in flight.
 * The file is closed if only the place held it open. */
void weft__fixed_files_leave(struct weft__fixed_files *files,
			     struct weft__ring *ring, int place);

/* Before the ring is closed, by the thread that closes it.  Closes files that
 * neither a descriptor nor a request in flight holds open. */
void weft__fixed_files_close(struct weft__fixed_files *files,
			     struct weft__ring *ring);

#endif

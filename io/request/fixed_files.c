/* SPDX-License-Identifier: MIT */
/*
 * Fixed files: a ring's table of descriptors, and the list of its free places;
 * the model is in fixed_files.h.
 *
 * The table is registered at the first use.  The lock guards the list alone;
 * the kernel orders the changes of the table itself.
 */
#include "io/request/fixed_files.h"

#include <errno.h>

#include "runtime/base/assert.h"
#include "runtime/base/memory.h"

enum { LEAST = 64 };

#define FREE_BYTES \
	(WEFT__FIXED_FILES_MAX * sizeof(*((struct weft__fixed_files *)0)->free))

/* A ring allows no more places than the process may have descriptors. */
static uint32_t table_make(struct weft__ring *ring)
{
	for (uint32_t places = WEFT__FIXED_FILES_MAX; places >= LEAST;
	     places /= 2) {
		int r = weft__ring_add_files(ring, places);

		if (r >= 0)
			return places;
		if (r == -EOPNOTSUPP)
			break;
	}
	return 0;
}

static void files_open(struct weft__fixed_files *files, struct weft__ring *ring)
{
	uint32_t places;

	files->opened = true;
	files->free = weft__memory_zeroed(ring->memory, FREE_BYTES);
	if (!files->free)
		return;
	/* The lowest place is used first. */
	for (places = table_make(ring); places > 0; places--)
		files->free[files->free_count++] = (uint16_t)(places - 1);
}

static void files_free(struct weft__fixed_files *files, int place)
{
	weft__lock_take(&files->lock);
	files->free[files->free_count++] = (uint16_t)place;
	weft__lock_drop(&files->lock);
}

int weft__fixed_files_enter(struct weft__fixed_files *files,
			    struct weft__ring *ring, int fd)
{
	int place = -1;

	weft__lock_take(&files->lock);
	if (!files->opened)
		files_open(files, ring);
	if (files->free_count)
		place = files->free[--files->free_count];
	weft__lock_drop(&files->lock);
	if (place >= 0 && !weft__ring_set_file(ring, (uint32_t)place, fd)) {
		files_free(files, place);
		return -1;
	}
	return place;
}

void weft__fixed_files_leave(struct weft__fixed_files *files,
			     struct weft__ring *ring, int place)
{
	bool done = weft__ring_set_file(ring, (uint32_t)place, -1);

	weft__assert(done, "the kernel does not give up a file of ours");
	files_free(files, place);
}

void weft__fixed_files_close(struct weft__fixed_files *files,
			     struct weft__ring *ring)
{
	if (!files->free)
		return;
	/* The kernel would do it by itself, but only some 30 ms after the ring
	 * is closed. */
	weft__ring_drop_files(ring);
	weft__memory_free(ring->memory, files->free, FREE_BYTES);
	files->free = NULL;
}

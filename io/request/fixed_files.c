/* SPDX-License-Identifier: MIT */
/*
 * Fixed files: a ring's table of descriptors, and the list of its free places;
 * the model is in fixed_files.h.
 *
 * The table is registered at the first use.  The lock guards the list alone;
 * the kernel orders the changes of the table itself.
 */
#include "io/request/fixed_files.h"

#include <stdlib.h>

#include "runtime/base/assert.h"

/* Since Linux 6.14, and in newer headers. */
#ifndef IORING_FEAT_RW_ATTR
#define IORING_FEAT_RW_ATTR (1u << 16)
#endif

enum { LEAST = 64 };

static bool table_register(struct weft__ring *ring, uint32_t places)
{
	struct io_uring_rsrc_register reg = {
		.nr = places,
		.flags = IORING_RSRC_REGISTER_SPARSE,
	};

	return io_uring_register((unsigned)ring->uring.ring_fd,
				 IORING_REGISTER_FILES2, &reg,
				 sizeof(reg)) >= 0;
}

/* The kernel allows no more places than the process may have descriptors. */
static uint32_t table_make(struct weft__ring *ring)
{
	for (uint32_t places = WEFT__FIXED_FILES_MAX; places >= LEAST;
	     places /= 2)
		if (table_register(ring, places))
			return places;
	return 0;
}

static void files_open(struct weft__fixed_files *files, struct weft__ring *ring)
{
	uint32_t places;

	files->opened = true;
	if (!(ring->uring.features & IORING_FEAT_RW_ATTR))
		return;
	files->free = calloc(WEFT__FIXED_FILES_MAX, sizeof(*files->free));
	if (!files->free)
		return;
	/* The lowest place is used first. */
	for (places = table_make(ring); places > 0; places--)
		files->free[files->free_count++] = (uint16_t)(places - 1);
}

static int files_update(struct weft__ring *ring, int place, int fd)
{
	struct io_uring_files_update update = {
		.offset = (uint32_t)place,
		.fds = (uint64_t)(uintptr_t)&fd,
	};

	return io_uring_register((unsigned)ring->uring.ring_fd,
				 IORING_REGISTER_FILES_UPDATE, &update, 1);
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
	if (place >= 0 && files_update(ring, place, fd) != 1) {
		files_free(files, place);
		return -1;
	}
	return place;
}

void weft__fixed_files_leave(struct weft__fixed_files *files,
			     struct weft__ring *ring, int place)
{
	int r = files_update(ring, place, -1);

	weft__assert(r == 1, "the kernel does not give up a file of ours");
	files_free(files, place);
}

void weft__fixed_files_close(struct weft__fixed_files *files,
			     struct weft__ring *ring)
{
	if (!files->free)
		return;
	/* The kernel would do it by itself, but only some 30 ms after the ring
	 * is closed. */
	io_uring_register((unsigned)ring->uring.ring_fd,
			  IORING_UNREGISTER_FILES, NULL, 0);
	free(files->free);
	files->free = NULL;
}

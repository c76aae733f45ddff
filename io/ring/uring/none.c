/* SPDX-License-Identifier: MIT */
/*
 * In a build without io_uring, which needs no liburing: no ring opens.
 */
#include <errno.h>

#include "io/ring/ring.h"

size_t weft__ring_locked_bytes(unsigned entries)
{
	(void)entries;
	return 0;
}

int weft__ring_open(struct weft__ring *ring, unsigned entries, bool alone,
		    const struct weft_allocator *memory,
		    const char **ret_reason)
{
	(void)ring, (void)entries, (void)alone, (void)memory;
	*ret_reason = "weft was built without io_uring";
	return -ENOSYS;
}

/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_REST_H
#define WEFT_IO_REST_H

#include "io/request/shard.h"

/* Opens the descriptor for a foreign loop, and the timer in it.  -errno; what
 * is open then is closed with the shard. */
int weft__rest_open(struct weft__shard *shard);

/* Makes it readable at until_ns, or earlier. */
void weft__rest_until(struct weft__shard *shard, uint64_t until_ns,
		      uint64_t now_ns);

/* Makes it readable until weft__rest_until() or weft__rest_end(). */
void weft__rest_persist(struct weft__shard *shard);

/* The timer no longer makes it readable. */
void weft__rest_end(struct weft__shard *shard);

#endif

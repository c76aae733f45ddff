/* SPDX-License-Identifier: MIT */
/* The replies that are due on a connection, under its lock. */
#ifndef WEFT_ADAPTERS_REDIS_RING_H
#define WEFT_ADAPTERS_REDIS_RING_H

#include <errno.h>
#include <stdlib.h>

#include "adapters/redis/connection.h"

static inline struct due *due_at(struct weft_redis *redis, uint64_t place)
{
	return &redis->ring[place & (redis->ring_room - 1)];
}

/* Room for one call more than there are: REDIS3. */
static inline int ring_reserve(struct weft_redis *redis)
{
	uint64_t count = redis->ring_next - redis->ring_first;
	size_t room = redis->ring_room ? 2 * redis->ring_room : 16;
	struct due *ring;

	if (count + redis->queue_count < redis->ring_room)
		return 0;
	ring = calloc(room, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint64_t i = redis->ring_first; i < redis->ring_next; i++)
		ring[i & (room - 1)] = *due_at(redis, i);
	free(redis->ring);
	redis->ring = ring;
	redis->ring_room = room;
	return 0;
}

#endif

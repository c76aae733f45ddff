/* SPDX-License-Identifier: MIT */
#ifndef KV_BUCKETS_H
#define KV_BUCKETS_H

#include "map.h"

enum { BUCKETS_MIN = 8 };

/* The bucket of a hash: its last bits are the index, one bit less where this
 * round of growth has not come yet. */
static inline struct entry **buckets_of(struct map *map, uint64_t hash)
{
	size_t index = hash & map->mask;

	if (index >= map->bucket_count)
		index &= map->mask >> 1;
	return &map->buckets[index];
}

/* Removes the entry that the place, in a bucket's list, points to. */
struct entry *buckets_unlink(struct map *map, struct entry **place);

/* Add a bucket or remove some if there are too few or too many for the
 * entries. */
void buckets_grow(struct map *map);
void buckets_shrink(struct map *map);

#endif

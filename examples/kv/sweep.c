/* SPDX-License-Identifier: MIT */
#include "buckets.h"

enum { SWEPT_BUCKETS = 64, SWEPT_MANY = SWEPT_BUCKETS / 4 };

bool map_sweep(struct map *map)
{
	weft_nsec now = weft_now();
	unsigned dropped = 0;

	for (int i = 0; i < SWEPT_BUCKETS && map->expiring_count > 0; i++) {
		struct entry **place;

		/* There may be fewer than there were. */
		map->swept = (map->swept + 1) % map->bucket_count;
		place = &map->buckets[map->swept];
		while (*place)
			if ((*place)->expires_ns > now) {
				place = &(*place)->next;
			} else {
				entry_drop(buckets_unlink(map, place));
				dropped++;
			}
		buckets_shrink(map);
	}
	return dropped >= SWEPT_MANY;
}

/* SPDX-License-Identifier: MIT */
/*
 * To grow, one bucket is split into itself and a new last one; to shrink, the
 * last one joins the one that it was split from.
 */
#include <stdlib.h>

#include "buckets.h"

/* Enough for the buckets to be few when the last entry goes. */
enum { JOINED_TOGETHER = 4 };

struct entry *buckets_unlink(struct map *map, struct entry **place)
{
	struct entry *entry = *place;

	*place = entry->next;
	map->entry_count--;
	map->expiring_count -= entry->expires_ns != WEFT_NEVER;
	return entry;
}

static bool set_room(struct map *map, size_t room)
{
	void *buckets = realloc(map->buckets, room * sizeof(*map->buckets));

	if (!buckets)
		return false;
	map->buckets = buckets;
	map->room = room;
	return true;
}

/* Moves to the new bucket what belongs there. */
static void split(struct map *map, struct entry **from, struct entry **to)
{
	*to = NULL;
	while (*from) {
		struct entry *entry = *from;

		if (buckets_of(map, entry->hash) != to) {
			from = &entry->next;
			continue;
		}
		*from = entry->next;
		entry->next = *to;
		*to = entry;
	}
}

/* Where there is no memory for more buckets, their lists become longer. */
void buckets_grow(struct map *map)
{
	size_t last = map->bucket_count;

	if (map->entry_count <= last)
		return;
	if (last == map->room && !set_room(map, map->room * 2))
		return;
	if (last > map->mask)
		map->mask = map->mask * 2 + 1;
	map->bucket_count++;
	split(map, &map->buckets[last & map->mask >> 1], &map->buckets[last]);
}

static void join_last(struct map *map)
{
	size_t last = map->bucket_count - 1;
	struct entry **end = &map->buckets[last & map->mask >> 1];

	while (*end)
		end = &(*end)->next;
	*end = map->buckets[last];
	map->bucket_count--;
	if (last <= map->mask / 2 + 1)
		map->mask >>= 1;
	if (last < map->room / 4)
		set_room(map, map->room / 2);
}

void buckets_shrink(struct map *map)
{
	for (int i = 0; i < JOINED_TOGETHER; i++)
		if (map->bucket_count > BUCKETS_MIN &&
		    map->entry_count < map->bucket_count / 4)
			join_last(map);
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "buckets.h"
#include "map.h"

int map_init(struct map *map)
{
	*map = (struct map){
		.buckets = calloc(BUCKETS_MIN, sizeof(*map->buckets)),
		.bucket_count = BUCKETS_MIN,
		.room = BUCKETS_MIN,
		.mask = BUCKETS_MIN - 1,
	};
	return map->buckets ? 0 : -ENOMEM;
}

void map_fini(struct map *map)
{
	for (size_t i = 0; map->buckets && i < map->bucket_count; i++)
		while (map->buckets[i])
			entry_drop(buckets_unlink(map, &map->buckets[i]));
	free(map->buckets);
}

/* Where the entry of the key is linked, or where its bucket ends. */
static struct entry **find_place(struct map *map, struct key key)
{
	struct entry **place = buckets_of(map, key.hash);

	while (*place && !entry_is_of(*place, key))
		place = &(*place)->next;
	return place;
}

struct entry *map_find(struct map *map, struct key key)
{
	struct entry **place = find_place(map, key);

	if (!*place || (*place)->expires_ns == WEFT_NEVER ||
	    (*place)->expires_ns > weft_now())
		return *place;
	entry_drop(buckets_unlink(map, place));
	buckets_shrink(map);
	return NULL;
}

struct entry *map_put(struct map *map, struct entry *entry)
{
	struct key key = { entry_key(entry), entry->hash };
	struct entry **place = find_place(map, key);
	struct entry *old = *place ? buckets_unlink(map, place) : NULL;

	entry->next = *place;
	*place = entry;
	map->entry_count++;
	map->expiring_count += entry->expires_ns != WEFT_NEVER;
	buckets_grow(map);
	return old;
}

void map_remove(struct map *map, struct entry *entry)
{
	struct entry **place = buckets_of(map, entry->hash);

	while (*place != entry)
		place = &(*place)->next;
	buckets_unlink(map, place);
	buckets_shrink(map);
}

void map_expire(struct map *map, struct entry *entry, weft_nsec expires_ns)
{
	map->expiring_count -= entry->expires_ns != WEFT_NEVER;
	entry->expires_ns = expires_ns;
	map->expiring_count += entry->expires_ns != WEFT_NEVER;
}

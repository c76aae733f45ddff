/* SPDX-License-Identifier: MIT */
/*
 * Entries by their keys, in the buckets of a linear hash: it grows and shrinks
 * by one bucket at a time, so no call moves all entries.  Only the array of
 * pointers is copied now and then.
 *
 * The caller sees to it that one thread at a time uses a map.
 */
#ifndef KV_MAP_H
#define KV_MAP_H

#include "entry.h"

struct map {
	struct entry **buckets;
	size_t bucket_count;
	size_t room; /* in the array */
	size_t mask; /* the least power of 2 that is enough, - 1 */
	size_t entry_count;
	size_t expiring_count; /* of those, the ones with a time */
	size_t swept;	       /* the bucket that map_sweep() looks at next */
};

/* Returns 0 or -ENOMEM. */
int map_init(struct map *map);

/* Drops all entries. */
void map_fini(struct map *map);

/* The entry of the key, or NULL.  One whose time has come is dropped first. */
struct entry *map_find(struct map *map, struct key key);

/* Takes over the caller's hold of the entry.  Returns the entry of the same key
 * that it replaces, which the caller drops; or NULL. */
struct entry *map_put(struct map *map, struct entry *entry);

/* Removes an entry that is in the map; the caller drops it. */
void map_remove(struct map *map, struct entry *entry);

void map_expire(struct map *map, struct entry *entry, weft_nsec expires_ns);

/* Looks at some buckets, from where the last call ended, and drops the entries
 * whose time has come.  Returns true if there were many of them. */
bool map_sweep(struct map *map);

#endif

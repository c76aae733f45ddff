/* SPDX-License-Identifier: MIT */
/*
 * A key with its value, in one piece of memory.
 *
 * Neither changes: a new value is a new entry in the old one's place.  So a
 * task that holds an entry may send the value without any lock, however long
 * that takes.  The last holder frees the entry; the table is one.
 */
#ifndef KV_ENTRY_H
#define KV_ENTRY_H

#include <stdatomic.h>
#include <weft/time.h>

#include "bytes.h"

/* A key, and its hash in the table that is asked for it. */
struct key {
	struct bytes bytes;
	uint64_t hash;
};

struct entry {
	struct entry *next;   /* in its bucket; under the shard's lock */
	weft_nsec expires_ns; /* the same; WEFT_NEVER: it does not */
	uint64_t hash;
	atomic_uint holders;
	uint32_t key_bytes;
	uint32_t value_bytes;
	char text[]; /* the key, then the value */
};

/* Copies both; the caller is the holder.  NULL: no memory. */
struct entry *entry_new(struct key key, struct bytes value,
			weft_nsec expires_ns);

void entry_free(struct entry *entry);

static inline struct entry *entry_hold(struct entry *entry)
{
	atomic_fetch_add(&entry->holders, 1);
	return entry;
}

/* NULL is allowed. */
static inline void entry_drop(struct entry *entry)
{
	if (entry && atomic_fetch_sub(&entry->holders, 1) == 1)
		entry_free(entry);
}

static inline struct bytes entry_key(const struct entry *entry)
{
	return (struct bytes){ entry->text, entry->key_bytes };
}

static inline struct bytes entry_value(const struct entry *entry)
{
	return (struct bytes){ entry->text + entry->key_bytes,
			       entry->value_bytes };
}

static inline bool entry_is_of(const struct entry *entry, struct key key)
{
	return entry->hash == key.hash && entry->key_bytes == key.bytes.count &&
	       memcmp(entry->text, key.bytes.at, key.bytes.count) == 0;
}

#endif

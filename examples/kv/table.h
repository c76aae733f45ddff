/* SPDX-License-Identifier: MIT */
/*
 * The keys and values that all connections share.
 *
 * The table is divided into shards by the hash of the key, each with a lock of
 * its own, so that tasks on several workers seldom meet.  A lock is held for a
 * few instructions and never while a task suspends: so it is a mutex of
 * threads.  Memory is allocated before, and freed after.
 *
 *	struct key key = table_key(table, name);
 *	struct shard *shard = table_lock(table, key);
 *	struct entry *entry = map_find(&shard->map, key);
 *
 *	if (entry)
 *		entry_hold(entry);
 *	shard_unlock(shard);
 */
#ifndef KV_TABLE_H
#define KV_TABLE_H

#include <pthread.h>

#include "hash.h"
#include "map.h"

enum { SHARD_BITS = 8, SHARDS = 1 << SHARD_BITS };

struct shard {
	pthread_mutex_t lock;
	struct map map; /* under the lock */
} __attribute__((aligned(64)));

struct table {
	struct hash_seed seed;
	struct shard shards[SHARDS];
};

/* NULL: no memory, or no random numbers. */
struct table *table_new(void);
void table_free(struct table *table);

static inline struct key table_key(const struct table *table,
				   struct bytes bytes)
{
	return (struct key){ bytes, hash_bytes(&table->seed, bytes) };
}

/* Locks the shard of a key; shard_unlock() ends that. */
static inline struct shard *table_lock(struct table *table, struct key key)
{
	struct shard *shard = &table->shards[key.hash >> (64 - SHARD_BITS)];

	pthread_mutex_lock(&shard->lock);
	return shard;
}

static inline void shard_unlock(struct shard *shard)
{
	pthread_mutex_unlock(&shard->lock);
}

size_t table_count(struct table *table);

/* Drop all entries, or those whose time has come.  Let other tasks run
 * meanwhile.  Return 0, or -ENOMEM, -ECANCELED, -ETIMEDOUT: some are left. */
int table_clear(struct table *table);
int table_sweep(struct table *table);

#endif

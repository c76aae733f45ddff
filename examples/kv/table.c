/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/random.h>
#include <weft/task.h>

#include "table.h"

static struct table *fill(struct table *table)
{
	ssize_t n = getrandom(&table->seed, sizeof(table->seed), 0);
	int r = n == (ssize_t)sizeof(table->seed) ? 0 : -1;

	for (int i = 0; i < SHARDS; i++) {
		pthread_mutex_init(&table->shards[i].lock, NULL);
		r |= map_init(&table->shards[i].map);
	}
	if (r == 0)
		return table;
	table_free(table);
	return NULL;
}

struct table *table_new(void)
{
	struct table *table =
		aligned_alloc(_Alignof(struct shard), sizeof(*table));

	return table ? fill(table) : NULL;
}

void table_free(struct table *table)
{
	for (int i = 0; i < SHARDS; i++) {
		map_fini(&table->shards[i].map);
		pthread_mutex_destroy(&table->shards[i].lock);
	}
	free(table);
}

size_t table_count(struct table *table)
{
	size_t count = 0;

	for (int i = 0; i < SHARDS; i++) {
		struct shard *shard = &table->shards[i];

		pthread_mutex_lock(&shard->lock);
		count += shard->map.entry_count;
		shard_unlock(shard);
	}
	return count;
}

int table_clear(struct table *table)
{
	int r = 0;

	for (int i = 0; i < SHARDS && r == 0; i++) {
		struct shard *shard = &table->shards[i];
		struct map fresh, old;

		r = map_init(&fresh);
		if (r < 0)
			break;
		pthread_mutex_lock(&shard->lock);
		old = shard->map;
		shard->map = fresh;
		shard_unlock(shard);
		map_fini(&old);
		r = weft_yield();
	}
	return r;
}

/* A part of the shard, and the next part only if that was worth it. */
static int sweep(struct shard *shard)
{
	bool many = true;
	int r = 0;

	while (many && r == 0) {
		pthread_mutex_lock(&shard->lock);
		many = shard->map.expiring_count > 0 && map_sweep(&shard->map);
		shard_unlock(shard);
		if (many)
			r = weft_yield();
	}
	return r;
}

int table_sweep(struct table *table)
{
	int r = 0;

	for (int i = 0; i < SHARDS && r == 0; i++)
		r = sweep(&table->shards[i]);
	return r;
}

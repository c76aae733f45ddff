/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pool.h"

int pool_add(struct pool *pool, const char *name)
{
	struct backend *backend = &pool->backends[pool->count];
	int r;

	if (pool->count == BACKENDS_MAX)
		return -ENOSPC;
	r = weft_addr_parse(name, &backend->address);
	if (r < 0)
		return r;
	backend->name = name;
	pool->count++;
	return 0;
}

static bool is_up(const struct backend *backend)
{
	return backend->failures < FAILURES_MAX;
}

/* The first that qualifies from the next in turn on, or of those the one with
 * the fewest connections. */
static struct backend *choose(struct pool *pool, uint64_t tried)
{
	struct backend *best = NULL;

	for (unsigned i = 0; i < pool->count; i++) {
		unsigned index = (pool->next + i) % pool->count;
		struct backend *backend = &pool->backends[index];

		if ((tried >> index & 1) || !is_up(backend))
			continue;
		if (!best || (pool->by_connections &&
			      backend->connections < best->connections))
			best = backend;
	}
	return best;
}

struct backend *pool_take(struct pool *pool, uint64_t *tried)
{
	struct backend *backend;

	pthread_mutex_lock(&pool->lock);
	backend = choose(pool, *tried);
	if (backend) {
		unsigned index = (unsigned)(backend - pool->backends);

		*tried |= UINT64_C(1) << index;
		pool->next = index + 1;
		backend->connections++;
	}
	pthread_mutex_unlock(&pool->lock);
	return backend;
}

void pool_give(struct pool *pool, struct backend *backend)
{
	pthread_mutex_lock(&pool->lock);
	backend->connections--;
	pthread_mutex_unlock(&pool->lock);
}

void pool_report(struct pool *pool, struct backend *backend, int result)
{
	bool was_up, up;

	pthread_mutex_lock(&pool->lock);
	was_up = is_up(backend);
	if (result >= 0)
		backend->failures = 0;
	else if (was_up)
		backend->failures++;
	up = is_up(backend);
	pthread_mutex_unlock(&pool->lock);
	if (up && !was_up)
		fprintf(stderr, "balancer: %s is up\n", backend->name);
	if (!up && was_up)
		fprintf(stderr, "balancer: %s is down: %s\n", backend->name,
			strerror(-result));
}

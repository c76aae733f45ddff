/* SPDX-License-Identifier: MIT */
/*
 * The servers that connections are passed on to, and the choice among them.
 *
 * A server that cannot be connected to several times in a row is down: it gets
 * no connections until one succeeds again.
 */
#ifndef BALANCER_POOL_H
#define BALANCER_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <weft/weft.h>

enum { BACKENDS_MAX = 64, FAILURES_MAX = 2 };

struct backend {
	const char *name; /* immutable, as is the address */
	struct weft_addr address;
	/* Under the pool's lock, which is never held in a call that suspends,
	 * so it is a mutex of threads. */
	unsigned connections;
	unsigned failures; /* in a row */
};

struct pool {
	pthread_mutex_t lock;
	bool by_connections; /* the one with the fewest, or each in turn */
	unsigned count;
	unsigned next;
	struct backend backends[BACKENDS_MAX];
};

/* Returns 0, -ENOSPC, or an error of weft_addr_parse(). */
int pool_add(struct pool *pool, const char *name);

/* Chooses a backend that is up and not in the set `tried`, adds it to the set,
 * and counts a connection to it, until pool_give().  NULL: there is none. */
struct backend *pool_take(struct pool *pool, uint64_t *tried);
void pool_give(struct pool *pool, struct backend *backend);

/* The result of a connect: a descriptor or an error.  Prints it when the
 * backend goes up or down. */
void pool_report(struct pool *pool, struct backend *backend, int result);

#endif

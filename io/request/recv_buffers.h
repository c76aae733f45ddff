/* SPDX-License-Identifier: MIT */
/*
 * Pool - the buffers that a ring's receives take from, for the streams of a
 * worker.
 *
 *	owner: give --> [ring of buffers] --> kernel --> a completion names it
 *	  ^                                                     |
 *	  '-- collect -- (returned) <-- give_back, any worker --' a stream's
 *
 * A pool begins small, so that the buffers in use stay in the caches, and grows
 * when the kernel finds none left.
 *
 * Invariants
 *   BUF1  A buffer is in one place: in the ring, in a stream, or returned.
 *   BUF2  Only the owner writes to the ring.  Buffers that others give back
 *       wait on a stack; it is taken as a whole, so a buffer that comes and
 *       goes meanwhile does no harm.
 *
 * Orderings
 *   [pool.returned]  give_back release -> collect acquire: `next`, and that the
 *       reader no longer reads what the kernel will overwrite.
 *   Modelled in tests/model/model_stream.c.
 */
#ifndef WEFT_IO_REQUEST_RECV_BUFFERS_H
#define WEFT_IO_REQUEST_RECV_BUFFERS_H

#include <stdbool.h>

#include "io/ring/ring.h"
#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"

enum weft__pool_kind {
	WEFT__POOL_SMALL,
	WEFT__POOL_LARGE,
	WEFT__POOLS,
};

enum {
	WEFT__POOL_SMALL_BYTES = 2 << 10,
	WEFT__POOL_LARGE_BYTES = 32 << 10,
};

struct weft__piece {
	uint32_t next;	/* index + 1, in its holder's list */
	uint32_t bytes; /* received into it */
};

struct weft__pool {
	/* Immutable once open. */
	struct weft__ring_buffer *ring; /* NULL: not open */
	char *memory;
	struct weft__piece *pieces;
	uint32_t each; /* bytes a buffer holds */
	uint32_t max; /* buffers; a power of two */
	uint8_t group;
	bool refused; /* owner only: it could not be opened */
	/* Owner only. */
	uint32_t made;	/* buffers made so far */
	uint32_t given; /* buffers given so far; wraps */
	/* How many times the kernel took a buffer; written under the shard's
	 * lock, read by the owner. */
	weft__atomic(uint32_t) taken;
	weft__atomic(uint32_t) asked; /* requests that may take one */
	weft__atomic(uint32_t) returned WEFT__APART; /* index + 1; newest */
};

/* Owner only: opens the pool, with buffers to receive into.  False: there is no
 * memory, or the kernel has no rings of buffers. */
bool weft__pool_open(struct weft__pool *pool, struct weft__ring *ring,
		     enum weft__pool_kind kind);

/* After the ring was closed.  If requests are left, the kernel may still write
 * to the buffers: then their addresses stay mapped, without access; and those
 * of the program's allocator are not given back. */
void weft__pool_close(struct weft__pool *pool, const struct weft__ring *ring);

/* Owner only: the kernel found no buffer; again: it did so before.  Makes more,
 * unless it will find some now.  False: there are no more. */
bool weft__pool_grow(struct weft__pool *pool, bool again);

/* Owner only: puts what others gave back into the ring. */
void weft__pool_collect_slow(struct weft__pool *pool);

static inline void weft__pool_collect(struct weft__pool *pool)
{
	/* relaxed: a look; the swap takes them. */
	if (weft__load(&pool->returned, relaxed)) /* mutate: recheck */
		weft__pool_collect_slow(pool);
}

static inline void *weft__pool_at(const struct weft__pool *pool, uint32_t piece)
{
	/* The distance is not a power of two, so the sets of a cache are used
	 * evenly. */
	return pool->memory + (size_t)piece * (pool->each + WEFT__LINE_BYTES);
}

/* A request takes buffers from here on (ask), or has ended (asked). */
static inline void weft__pool_ask(struct weft__pool *pool)
{
	/* relaxed: read when no thread asks any more. */
	weft__add(&pool->asked, 1u, relaxed);
}

static inline void weft__pool_asked(struct weft__pool *pool)
{
	/* relaxed: as above. */
	weft__sub(&pool->asked, 1u, relaxed);
}

/* Lock held: the kernel took a buffer, and received `bytes` into it. */
static inline void weft__pool_took(struct weft__pool *pool, uint32_t piece,
				   uint32_t bytes)
{
	weft__ring_buffers_taken(pool->ring);
	/* relaxed: one writer at a time; others take it as an estimate. */
	weft__store(&pool->taken, weft__load(&pool->taken, relaxed) + 1,
		    relaxed);
	pool->pieces[piece].bytes = bytes;
}

/* Owner only. */
void weft__pool_give(struct weft__pool *pool, uint32_t piece);

/* From any other thread. */
void weft__pool_give_back(struct weft__pool *pool, uint32_t piece);

#endif

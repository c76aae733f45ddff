/* SPDX-License-Identifier: MIT */
/*
 * Pool - buffers that a ring's receives take from, for the streams of a worker.
 *
 *	owner: give --> [ring of buffers] --> kernel --> a completion names it
 *	  ^                                                     |
 *	  '-- collect -- (returned) <-- give_back, any worker --' a stream's
 *
 * It begins small, so that what is used is warm in the caches, and grows when
 * the kernel finds none left.
 *
 * Invariants
 *   BUF1  A buffer is in one place: in the ring, in a stream, or returned.
 *   BUF2  Only the owner writes to the ring.  A buffer that others give back
 *       waits on a stack.  The stack is taken whole, so a buffer that comes and
 *       goes meanwhile does no harm.
 *
 * Orderings
 *   [pool.returned]  give_back release -> collect acquire: `next`, and that the
 *       reader is done with what the kernel will write over.
 *   Modelled in tests/model/model_stream.c.
 */
#ifndef WEFT_IO_REQUEST_RECV_BUFFERS_H
#define WEFT_IO_REQUEST_RECV_BUFFERS_H

#include <liburing.h>
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
	uint32_t next;	/* + 1, in a list of its holder */
	uint32_t bytes; /* that were received into it */
};

struct weft__pool {
	/* Immutable once open. */
	struct io_uring_buf_ring *ring; /* NULL: it is not, or cannot be */
	char *memory;
	struct weft__piece *pieces;
	uint32_t each; /* bytes a buffer holds */
	uint32_t max; /* buffers; a power of two */
	uint16_t group;
	bool refused; /* owner only: it could not be opened */
	/* Owner only. */
	uint32_t made;	/* buffers that are in use so far */
	uint32_t given; /* how often one was, wraps */
	/* How often the kernel took one; under the shard's lock, but looked at
	 * by the owner. */
	weft__atomic(uint32_t) taken;
	weft__atomic(uint32_t) asked; /* requests that may take one */
	weft__atomic(uint32_t) returned WEFT__APART; /* + 1; newest */
};

/* Owner only: the pool, with buffers that can be received into.  False: there
 * is no memory, or the kernel has no such thing. */
bool weft__pool_open(struct weft__pool *pool, struct weft__ring *ring,
		     enum weft__pool_kind kind);

/* After the ring was closed.  If requests were left, the kernel may not be done
 * with them yet: then the addresses stay taken, by nothing. */
void weft__pool_close(struct weft__pool *pool);

/* Owner only: the kernel found none, or did so again; makes more unless it will
 * find some now.  False: there are no more. */
bool weft__pool_grow(struct weft__pool *pool, bool again);

/* Owner only: hands on what others gave back. */
void weft__pool_collect_slow(struct weft__pool *pool);

static inline void weft__pool_collect(struct weft__pool *pool)
{
	/* relaxed: a look; taken by a swap. */
	if (weft__load(&pool->returned, relaxed)) /* mutate: recheck */
		weft__pool_collect_slow(pool);
}

static inline void *weft__pool_at(const struct weft__pool *pool, uint32_t piece)
{
	/* Not a power of two: the lines of a cache are used evenly. */
	return pool->memory + (size_t)piece * (pool->each + WEFT__LINE_BYTES);
}

/* A request is to take buffers from here on / has ended. */
static inline void weft__pool_ask(struct weft__pool *pool)
{
	/* relaxed: looked at when nobody asks any more. */
	weft__add(&pool->asked, 1u, relaxed);
}

static inline void weft__pool_asked(struct weft__pool *pool)
{
	/* relaxed: likewise. */
	weft__sub(&pool->asked, 1u, relaxed);
}

/* Lock held: the kernel took a buffer, and received that into it. */
static inline void weft__pool_took(struct weft__pool *pool, uint32_t piece,
				   uint32_t bytes)
{
	/* From who gave it to the ring, through the kernel: whoever had it
	 * before is done with it. */
	(void)io_uring_smp_load_acquire(&pool->ring->tail);
	/* relaxed: one writer at a time, and an estimate to others. */
	weft__store(&pool->taken, weft__load(&pool->taken, relaxed) + 1,
		    relaxed);
	pool->pieces[piece].bytes = bytes;
}

/* Owner only. */
void weft__pool_give(struct weft__pool *pool, uint32_t piece);

/* From any other thread. */
void weft__pool_give_back(struct weft__pool *pool, uint32_t piece);

#endif

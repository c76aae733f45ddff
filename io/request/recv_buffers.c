/* SPDX-License-Identifier: MIT */
/*
 * Pool: making, growing, and handing buffers to the kernel and back; the model
 * is in recv_buffers.h.
 *
 * A pool takes its whole memory when it is opened, and touches only the buffers
 * that it gives to the ring; so growing is giving more of them.  The memory is
 * mapped, or comes from the program's allocator.  The ring of buffers, which
 * the kernel shares, is always mapped.
 */
#include "io/request/recv_buffers.h"

#include <errno.h>
#include <sys/mman.h>

#include "runtime/base/memory.h"

/* For each kind: the bytes of a buffer, the buffers at first, and at most. */
static const struct {
	uint32_t each, first, max;
} kinds[WEFT__POOLS] = {
	[WEFT__POOL_SMALL] = { WEFT__POOL_SMALL_BYTES, 64, 2048 },
	[WEFT__POOL_LARGE] = { WEFT__POOL_LARGE_BYTES, 16, 128 },
};

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static size_t memory_bytes(const struct weft__pool *pool)
{
	return (size_t)pool->max * (pool->each + WEFT__LINE_BYTES);
}

static size_t ring_bytes(const struct weft__pool *pool)
{
	return pool->max * sizeof(*pool->ring);
}

static size_t pieces_bytes(const struct weft__pool *pool)
{
	return pool->max * sizeof(*pool->pieces);
}

static void *buffers_new(const struct weft_allocator *from, size_t bytes)
{
	return from ? weft__memory_from(from, bytes, WEFT__MEMORY_APART) :
		      map(bytes);
}

static void buffers_free(const struct weft_allocator *from, void *memory,
			 size_t bytes)
{
	if (from)
		weft__memory_apart_free(from, memory, bytes);
	else if (memory)
		munmap(memory, bytes);
}

static void pool_free(struct weft__pool *pool,
		      const struct weft_allocator *from)
{
	if (pool->ring)
		munmap(pool->ring, ring_bytes(pool));
	buffers_free(from, pool->memory, memory_bytes(pool));
	weft__memory_free(from, pool->pieces, pieces_bytes(pool));
	pool->ring = NULL;
	pool->memory = NULL;
	pool->pieces = NULL;
}

static bool pool_new(struct weft__pool *pool, const struct weft_allocator *from)
{
	pool->ring = map(ring_bytes(pool));
	pool->memory = buffers_new(from, memory_bytes(pool));
	pool->pieces = weft__memory_zeroed(from, pieces_bytes(pool));
	return pool->ring && pool->memory && pool->pieces;
}

/* Registers a pool of at most pool->max buffers. */
static int pool_try(struct weft__pool *pool, struct weft__ring *ring)
{
	int r = -ENOMEM;

	if (pool_new(pool, ring->memory))
		r = weft__ring_add_buffers(ring, pool->ring, pool->max,
					   pool->group);
	if (r < 0)
		pool_free(pool, ring->memory);
	return r;
}

/* The kernel counts the ring of a pool as locked memory.  If it does not fit,
 * the pool gets a smaller one. */
static bool pool_make(struct weft__pool *pool, struct weft__ring *ring,
		      enum weft__pool_kind kind)
{
	int r;

	pool->each = kinds[kind].each;
	pool->max = kinds[kind].max;
	pool->group = (uint8_t)kind;
	r = pool_try(pool, ring);
	while (r == -ENOMEM && pool->max / 2 >= kinds[kind].first) {
		pool->max /= 2;
		r = pool_try(pool, ring);
	}
	if (r < 0)
		return false;
	while (pool->made < kinds[kind].first)
		weft__pool_give(pool, pool->made++);
	return true;
}

bool weft__pool_open(struct weft__pool *pool, struct weft__ring *ring,
		     enum weft__pool_kind kind)
{
	if (weft__likely(pool->ring != NULL))
		return true;
	if (!pool->refused)
		pool->refused = !pool_make(pool, ring, kind);
	return !pool->refused;
}

/* Takes away the memory: a receive into it now fails.  The program's own stays
 * as it is. */
static void pool_wall_up(struct weft__pool *pool,
			 const struct weft_allocator *from)
{
	void *at = pool->memory;

	if (!from)
		at = mmap(at, memory_bytes(pool), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				  MAP_FIXED,
			  -1, 0);
	if (at == pool->memory)
		pool->memory = NULL;
}

void weft__pool_close(struct weft__pool *pool, const struct weft__ring *ring)
{
	/* relaxed: only one thread is left. */
	if (pool->memory && weft__load(&pool->asked, relaxed))
		pool_wall_up(pool, ring->memory);
	pool_free(pool, ring->memory);
}

static bool is_scarce(struct weft__pool *pool)
{
	/* relaxed: an estimate, which lacks buffers that were taken but not
	 * reaped. */
	uint32_t left = pool->given - weft__load(&pool->taken, relaxed);

	return left < pool->made / 2;
}

bool weft__pool_grow(struct weft__pool *pool, bool again)
{
	uint32_t until = pool->made * 2;

	if (!again && !is_scarce(pool))
		return true;
	if (pool->made == pool->max)
		return !again;
	while (pool->made < until)
		weft__pool_give(pool, pool->made++);
	return true;
}

void weft__pool_give(struct weft__pool *pool, uint32_t piece)
{
	weft__ring_buffers_give(pool->ring, pool->max, pool->given++,
				weft__pool_at(pool, piece), pool->each,
				(uint16_t)piece);
}

void weft__pool_give_back(struct weft__pool *pool, uint32_t piece)
{
	/* relaxed: decided by the CAS. */
	uint32_t old = weft__load(&pool->returned, relaxed);

	do {
		pool->pieces[piece].next = old;
		/* pairs: [pool.returned] */
	} while (!weft__cas(&pool->returned, &old, piece + 1,
			    release)); /* mutate: retry */
}

void weft__pool_collect_slow(struct weft__pool *pool)
{
	/* pairs: [pool.returned] */
	uint32_t piece = weft__swap(&pool->returned, 0u, acquire);

	while (piece) {
		uint32_t next = pool->pieces[piece - 1].next;

		weft__pool_give(pool, piece - 1);
		piece = next;
	}
}

/* SPDX-License-Identifier: MIT */
#include "io/ring/soft/ops.h"

#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/sched/runtime.h"

enum { BLOCK_OPS = 64, HASH_MIN = 64 };

struct weft__soft_block {
	struct weft__soft_block *next;
	struct weft__soft_op ops[BLOCK_OPS];
};

/* ---- Memory ------------------------------------------------------------- */

static bool block_new(struct weft__soft *soft)
{
	struct weft__soft_block *block =
		weft__memory_zeroed(soft->runtime->memory, sizeof(*block));

	if (!block)
		return false;
	block->next = soft->blocks;
	soft->blocks = block;
	for (int i = 0; i < BLOCK_OPS; i++) {
		block->ops[i].next = soft->free;
		soft->free = &block->ops[i];
	}
	return true;
}

static void hash_free(struct weft__soft *soft, struct weft__soft_op **table,
		      uint32_t size)
{
	weft__memory_free(soft->runtime->memory, table, size * sizeof(*table));
}

void weft__soft_ops_fini(struct weft__soft *soft)
{
	while (soft->blocks) {
		struct weft__soft_block *block = soft->blocks;

		soft->blocks = block->next;
		weft__memory_free(soft->runtime->memory, block, sizeof(*block));
	}
	hash_free(soft, soft->by_hash, soft->hash_size);
}

/* ---- By user_data ------------------------------------------------------- */

static struct weft__soft_op **bucket(struct weft__soft *soft,
				     uint64_t user_data)
{
	/* The golden ratio: Knuth, The Art of Computer Programming 3, 6.4. */
	uint64_t hash = user_data * 0x9e3779b97f4a7c15u;

	return &soft->by_hash[(hash >> 32) & (soft->hash_size - 1)];
}

static void hash_add(struct weft__soft *soft, struct weft__soft_op *op)
{
	struct weft__soft_op **at = bucket(soft, op->user_data);

	op->same_hash = *at;
	*at = op;
}

/* Makes room for another request.  A table that cannot grow is slower. */
static bool hash_grow(struct weft__soft *soft)
{
	uint32_t old_size = soft->hash_size, size;
	struct weft__soft_op **old = soft->by_hash, **table;

	if (soft->ops_count < old_size)
		return true;
	size = old_size ? old_size * 2 : HASH_MIN;
	table = weft__memory_zeroed(soft->runtime->memory,
				    size * sizeof(*table));
	if (!table)
		return old_size;
	soft->by_hash = table;
	soft->hash_size = size;
	for (uint32_t i = 0; i < old_size; i++) {
		struct weft__soft_op *next, *op;

		for (op = old[i]; op; op = next) {
			next = op->same_hash;
			hash_add(soft, op);
		}
	}
	hash_free(soft, old, old_size);
	return true;
}

static void hash_remove(struct weft__soft *soft, struct weft__soft_op *op)
{
	struct weft__soft_op **at = bucket(soft, op->user_data);

	while (*at != op)
		at = &(*at)->same_hash;
	*at = op->same_hash;
}

struct weft__soft_op *weft__soft_op_find(struct weft__soft *soft,
					 uint64_t user_data)
{
	struct weft__soft_op *op;

	if (!soft->hash_size)
		return NULL;
	op = *bucket(soft, user_data);
	while (op && (op->user_data != user_data ||
		      op->state == WEFT__SOFT_HELD))
		op = op->same_hash;
	return op;
}

/* ---- Life --------------------------------------------------------------- */

struct weft__soft_op *weft__soft_op_new(struct weft__soft *soft,
					const struct weft__soft_op *from)
{
	struct weft__soft_op *op;

	if (!hash_grow(soft) || (!soft->free && !block_new(soft)))
		return NULL;
	op = soft->free;
	soft->free = op->next;
	*op = *from;
	hash_add(soft, op);
	soft->ops_count++;
	return op;
}

void weft__soft_op_drop(struct weft__soft *soft, struct weft__soft_op *op)
{
	hash_remove(soft, op);
	soft->ops_count--;
	op->state = WEFT__SOFT_FREE;
	op->next = soft->free;
	soft->free = op;
}

/* ---- Waiting for an edge ------------------------------------------------ */

/* The polls of eventfds that wake the worker do not count: they matter only to
 * one that sleeps. */
static bool counts(const struct weft__soft_op *op)
{
	return op->request.opcode != WEFT__OPCODE_POLL ||
	       !weft__soft_is_multishot(&op->request);
}

void weft__soft_op_link(struct weft__soft *soft, struct weft__soft_watch *watch,
			struct weft__soft_op *op, bool ages)
{
	op->state = WEFT__SOFT_LINKED;
	weft__soft_link(watch, op);
	soft->waiting += counts(op);
	op->ages = ages;
	if (!ages)
		return;
	op->linked_in = soft->period;
	op->younger = NULL;
	op->older = soft->youngest;
	*(op->older ? &op->older->younger : &soft->oldest) = op;
	soft->youngest = op;
}

void weft__soft_op_is_sure(struct weft__soft *soft, struct weft__soft_op *op)
{
	if (!op->ages)
		return;
	op->ages = false;
	*(op->older ? &op->older->younger : &soft->oldest) = op->younger;
	*(op->younger ? &op->younger->older : &soft->youngest) = op->older;
}

void weft__soft_op_unlink(struct weft__soft *soft,
			  struct weft__soft_watch *watch,
			  struct weft__soft_op *op)
{
	weft__soft_unlink(watch, op);
	weft__soft_op_is_sure(soft, op);
	soft->waiting -= counts(op);
}

/* ---- Completions -------------------------------------------------------- */

void weft__soft_show(struct weft__soft *soft)
{
	uint32_t flags = 0;

	if (soft->held.head || soft->watches.again >= 0)
		flags |= WEFT__RING_OVERFLOW;
	if (soft->waiting)
		flags |= WEFT__RING_UNSEEN;
	/* relaxed: a look, see weft__ring_held_back(). */
	weft__store(&soft->flags, flags, relaxed);
}

bool weft__soft_has_room(struct weft__soft *soft, bool submitter)
{
	/* relaxed: under the lock.  pairs: [ring.completions] */
	uint32_t used = weft__load(&soft->posted, relaxed) -
			weft__load(&soft->reaped, acquire);

	return used + !submitter <= soft->ring->completions_mask;
}

/* SOFT5 */
static void kick(struct weft__soft *soft)
{
	uint64_t one = 1;

	if (!soft->sleeping)
		return;
	soft->sleeping = false;
	/* Nothing reads the counter: the edge is what wakes. */
	if (write(soft->ring->fd, &one, sizeof(one)) < 0) /* mutate: wake */
		return;
}

void weft__soft_post(struct weft__soft *soft, uint64_t user_data,
		     int32_t result, uint32_t flags)
{
	/* relaxed: under the lock. */
	uint32_t tail = weft__load(&soft->posted, relaxed);

	soft->completions[tail & soft->ring->completions_mask] =
		(struct weft__completion){ user_data, result, flags };
	/* pairs: [ring.completions] */
	weft__store(&soft->posted, tail + 1, release);
	kick(soft);
}

static void hold(struct weft__soft *soft, struct weft__soft_op *op,
		 int32_t result, uint32_t flags)
{
	op->state = WEFT__SOFT_HELD;
	op->done = result;
	op->flags = flags;
	op->next = NULL;
	*(soft->held.head ? &soft->held.tail->next : &soft->held.head) = op;
	soft->held.tail = op;
	kick(soft);
}

static bool is_silent(const struct weft__soft_op *op, int32_t result)
{
	return (op->request.flags & WEFT__REQUEST_SILENT) && result >= 0;
}

void weft__soft_complete(struct weft__soft *soft, struct weft__soft_op *op,
			 int32_t result, uint32_t flags)
{
	if (is_silent(op, result)) {
		weft__soft_op_drop(soft, op);
	} else if (soft->held.head || !weft__soft_has_room(soft, false)) {
		hold(soft, op, result, flags);
	} else {
		weft__soft_post(soft, op->user_data, result, flags);
		weft__soft_op_drop(soft, op);
	}
	weft__soft_show(soft);
}

void weft__soft_release(struct weft__soft *soft)
{
	while (soft->held.head && weft__soft_has_room(soft, false)) {
		struct weft__soft_op *op = soft->held.head;

		soft->held.head = op->next;
		weft__soft_post(soft, op->user_data, op->done, op->flags);
		weft__soft_op_drop(soft, op);
	}
	weft__soft_show(soft);
}

/* SPDX-License-Identifier: MIT */
/*
 * Run queue - a worker's ring of ready tasks.  One owner pushes and pops; any
 * number of thieves take half.
 *
 *	         steal      real                tail
 *	slots ... [ being copied )[ ready          )[ free ...
 *	           by one thief    owner pops here   owner pushes here
 *
 * First in, first out for the owner and thieves alike: this is the ring of
 * Tokio and Go, not a Chase-Lev deque.  (Source: Tokio,
 * runtime/scheduler/multi_thread/queue.rs; the three phases of a steal come
 * from there.)
 *
 * Both heads are one word, so that a claim moves `real` and leaves `steal`:
 *
 *	head = [ steal : 32 | real : 32 ]
 *
 * Invariants
 *   RQ1  steal <= real <= tail <= steal + max, as distances modulo 2^32; and
 *       max <= SLOTS.
 *   RQ2  steal == real, unless a thief copies [steal, real).  So there is at
 *       most one thief at a time; a second one sees the difference and goes
 *       elsewhere.
 *   RQ3  Slots of [steal, tail) are not written.  Only the owner writes slots.
 *   RQ4  The thread that moves `real` past an index, by CAS, owns the task
 *       there.
 * Progress   push is wait-free; pop and claim retry only when another thread
 *   succeeded.  A release is never abandoned: its CAS fails only because the
 *   owner popped, and a thief that gave up would leave steal behind for ever.
 * Orderings
 *   [runq.publish]  push: tail release -> claim: tail acquire.  Carries the
 *       slot and the task behind it.
 *   [runq.reuse]  release: head CAS release -> push: head acquire.  The thief
 *       has read its slots before the owner writes them again.
 *   [runq.pass]  pop and release: head CAS release -> claim: head acquire.  A
 *       thief that sees a head also sees a tail at or behind it; with an older
 *       tail its count would wrap.  (Found by the model: a relaxed pop is
 *       enough on x86-64 only.)  The store of claim itself needs no release: a
 *       thief that sees it goes away.
 *   Modelled in tests/model/model_runq.c.
 */
#ifndef WEFT_RUNTIME_SCHED_RUNQ_H
#define WEFT_RUNTIME_SCHED_RUNQ_H

#include <stddef.h>

#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"

/* A worker that is alone uses all slots, unless a task waits outside its ring.
 * With other workers the ring is short: the tasks beyond it are in the shared
 * queue, where all have their turns, and that keeps the workers' shares equal.
 */
#ifndef WEFT__RUNQ_SLOTS
#define WEFT__RUNQ_SLOTS 1024u
#define WEFT__RUNQ_SHORT 256u
#endif

_Static_assert((WEFT__RUNQ_SLOTS & (WEFT__RUNQ_SLOTS - 1)) == 0,
	       "a slot is an index modulo a power of two");

struct weft__task;

struct weft__runq {
	weft__atomic(uint64_t) head WEFT__APART;
	weft__atomic(uint32_t) tail WEFT__APART;
	uint32_t max; /* immutable: slots used at the same time, at most */
	bool alone;    /* immutable: there are no thieves */
	weft__atomic(struct weft__task *) slots[WEFT__RUNQ_SLOTS] WEFT__APART;
};

/* A range that a thief has claimed and copies. */
struct weft__claim {
	uint32_t first;
	uint32_t count;
};

static inline uint64_t runq_pack(uint32_t steal, uint32_t real)
{
	return (uint64_t)steal << 32 | real;
}

static inline uint32_t runq_steal(uint64_t head)
{
	return (uint32_t)(head >> 32);
}

static inline uint32_t runq_real(uint64_t head)
{
	return (uint32_t)head;
}

/* `start` is the first index; tests start near the wrap. */
static inline void weft__runq_init(struct weft__runq *queue, uint32_t start,
				   uint32_t max, bool alone)
{
	queue->max = max;
	queue->alone = alone;
	/* relaxed: before the queue is shared. */
	weft__store(&queue->head, runq_pack(start, start), relaxed);
	weft__store(&queue->tail, start, relaxed);
}

/* Owner only: the tasks it may pop.  From other threads: an estimate. */
static inline uint32_t weft__runq_count(struct weft__runq *queue)
{
	/* relaxed: the owner wrote the tail; others only estimate. */
	uint32_t real = runq_real(weft__load(&queue->head, relaxed));

	return weft__load(&queue->tail, relaxed) - real;
}

/* From any thread: is there a task to steal?  A parker's last look. */
static inline bool weft__runq_visible(struct weft__runq *queue)
{
	/* relaxed: the parker's read-modify-write of [idle.push] comes
	 * before. */
	uint32_t tail = weft__load(&queue->tail, relaxed);

	return tail != runq_real(weft__load(&queue->head, relaxed));
}

/* Owner only: the slots free for a push. */
static inline uint32_t weft__runq_room(struct weft__runq *queue)
{
	/* relaxed: the push that follows acquires the same head, or a later
	 * one; and the tail is the owner's. */
	uint64_t head = weft__load(&queue->head, relaxed);

	return queue->max -
	       (weft__load(&queue->tail, relaxed) - runq_steal(head));
}

/* Owner only.  False: the queue is full, nothing was done.  The test comes
 * before the write, and uses steal: a slot being copied is not free (RQ3). */
static inline bool weft__runq_push(struct weft__runq *queue,
				   struct weft__task *task)
{
	/* relaxed: owner-only. */
	uint32_t tail = weft__load(&queue->tail, relaxed);
	/* pairs: [runq.reuse] */
	uint64_t head = weft__load(&queue->head, acquire);

	if (weft__unlikely(tail - runq_steal(head) >= queue->max))
		return false;
	/* relaxed: published by the tail. */
	weft__store(&queue->slots[tail % WEFT__RUNQ_SLOTS], task, relaxed);
	/* pairs: [runq.publish] */
	weft__store(&queue->tail, tail + 1, release);
	return true;
}

/* Owner only: the oldest, or NULL. */
static inline struct weft__task *weft__runq_pop(struct weft__runq *queue)
{
	/* relaxed: decided by the CAS; the slots are the owner's own. */
	uint64_t head = weft__load(&queue->head, relaxed);
	uint64_t next;

	do {
		uint32_t steal = runq_steal(head), real = runq_real(head);

		/* relaxed: owner-only. */
		if (real == weft__load(&queue->tail, relaxed))
			return NULL;
		/* With no thief both heads move.  Otherwise the ring would look
		 * for ever as if a thief copied from it (RQ2). */
		next = steal == real ? runq_pack(real + 1, real + 1) :
				       runq_pack(steal, real + 1);
		if (queue->alone) {
			/* relaxed: no other thread reads it. */
			weft__store(&queue->head, next, relaxed);
			break;
		}
		/* pairs: [runq.pass] */
	} while (!weft__cas(&queue->head, &head, next,
			    release)); /* mutate: retry */
	/* relaxed: the owner wrote it. */
	return weft__load(
		&queue->slots[runq_real(head) % WEFT__RUNQ_SLOTS], relaxed);
}

/* Owner only: the oldest, or NULL.  It stays, so there must be no thieves. */
static inline struct weft__task *weft__runq_peek(struct weft__runq *queue)
{
	/* relaxed: a look; the slots are the owner's own. */
	uint32_t real = runq_real(weft__load(&queue->head, relaxed));

	/* relaxed: owner-only. */
	if (real == weft__load(&queue->tail, relaxed))
		return NULL;
	/* relaxed: the owner wrote it. */
	return weft__load(&queue->slots[real % WEFT__RUNQ_SLOTS], relaxed);
}

/*
 * Phase 1 of a steal, from any thread: claims half (rounded up) of the ready
 * tasks, or all of them (`parts` is 2 or 1), but not more than `max`.  False:
 * the queue is empty, or another thief is at work.
 */
static inline bool weft__runq_claim(struct weft__runq *queue, uint32_t parts,
				    uint32_t max,
				    struct weft__claim *ret_claim)
{
	/* pairs: [runq.pass] */
	uint64_t head = weft__load(&queue->head, acquire);
	uint32_t count;

	do {
		uint32_t steal = runq_steal(head), real = runq_real(head);

		if (steal != real)
			return false;
		/* pairs: [runq.publish] */
		count = weft__load(&queue->tail, acquire) - real;
		count = (count + parts - 1) / parts;
		if (count > max)
			count = max;
		if (count == 0)
			return false;
		/* pairs: [runq.pass] */
	} while (!weft__cas_acquire(&queue->head, &head,
				    runq_pack(runq_steal(head),
					      runq_real(head) + count),
				    acquire)); /* mutate: retry */
	ret_claim->first = runq_real(head);
	ret_claim->count = count;
	return true;
}

/* Phase 2: the tasks of the claim, in age. */
static inline struct weft__task *
weft__runq_claimed(struct weft__runq *queue, const struct weft__claim *claim,
		   uint32_t i)
{
	/* relaxed: published by the tail that the claim read. */
	return weft__load(
		&queue->slots[(claim->first + i) % WEFT__RUNQ_SLOTS], relaxed);
}

/* Phase 3: gives the slots back. */
static inline void weft__runq_release(struct weft__runq *queue)
{
	/* relaxed: decided by the CAS. */
	uint64_t head = weft__load(&queue->head, relaxed);

	while (!weft__cas(&queue->head, &head,
			  runq_pack(runq_real(head), runq_real(head)),
			  release)) /* pairs: [runq.reuse]; mutate: retry */
		;
}

#endif

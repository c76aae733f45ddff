/* SPDX-License-Identifier: MIT */
/*
 * Injection queue - the one queue that all workers share.  Foreign threads, and
 * workers whose own queues are full, push here; every worker takes from it in
 * batches, on a count of tasks, before its local work.
 *
 * An intrusive list under a lock: a push never allocates, a batch moves under
 * one hold.  The length is a word of its own, so that an empty queue costs a
 * load.
 *
 * The length is written under the lock and read anywhere: only a hint.  A
 * parking worker, which must not miss a push, reads it after it announced
 * itself with a read-modify-write; see [idle.push].
 */
#ifndef WEFT_RUNTIME_SCHED_INJECT_H
#define WEFT_RUNTIME_SCHED_INJECT_H

#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/sched/idle.h"
#include "runtime/sched/runq.h"
#include "runtime/sched/task.h"

/* A chain of tasks through ->next, oldest first. */
struct weft__chain {
	struct weft__task *head;
	struct weft__task *tail;
	uint32_t count;
};

static inline void weft__chain_add(struct weft__chain *chain,
				   struct weft__task *task)
{
	task->next = task->ahead = NULL;
	if (chain->count++)
		chain->tail->next = task;
	else
		chain->head = task;
	chain->tail = task;
}

static inline struct weft__task *weft__chain_take(struct weft__chain *chain)
{
	struct weft__task *task = chain->head;

	if (task) {
		chain->head = task->next;
		chain->count--;
	}
	return task;
}

/* Adds the tasks of a claim, before the claim is released. */
static inline void weft__chain_claimed(struct weft__chain *chain,
				       struct weft__runq *from,
				       const struct weft__claim *claim)
{
	for (uint32_t i = 0; i < claim->count; i++) {
		struct weft__task *task = weft__runq_claimed(from, claim, i);

		weft__chain_add(chain, task);
		if (i + WEFT__AHEAD < claim->count)
			task->ahead = weft__runq_claimed(from, claim,
							 i + WEFT__AHEAD);
	}
}

struct weft__inject {
	struct weft__lock lock WEFT__APART;
	struct weft__chain chain; /* under lock */
	weft__atomic(uint32_t) length;
};

/* Appends the chain, which is not empty. */
void weft__inject_push(struct weft__inject *inject, struct weft__chain *chain);

/* The same, and claims the worker that is to be woken for it, or -1, in one
 * hold of the lock: seen under the lock, a task is never there before a worker
 * is on its way.  (A worker that pushes makes that good by the end of its
 * tick.) */
int weft__inject_push_claim(struct weft__inject *inject,
			    struct weft__chain *chain, struct weft__idle *idle);

/* Takes at most `max` tasks, the oldest, into the empty chain. */
void weft__inject_take(struct weft__inject *inject, uint32_t max,
		       struct weft__chain *ret_chain);

/* A hint, except in the pairs of [idle.push]. */
static inline uint32_t weft__inject_length(struct weft__inject *inject)
{
	/* relaxed: a parker's read-modify-write of [idle.push] comes before. */
	return weft__load(&inject->length, relaxed);
}

/*
 * A worker's fair share: the length divided by the number of workers, at least
 * 4, at most 64, so that one fetch neither drains the queue nor is too small to
 * pay.
 */
enum { WEFT__SHARE_MIN = 4, WEFT__SHARE_MAX = 64 };

static inline uint32_t weft__inject_share(uint32_t length, uint32_t workers)
{
	uint32_t share = length / workers;

	if (share < WEFT__SHARE_MIN)
		return WEFT__SHARE_MIN;
	return share > WEFT__SHARE_MAX ? WEFT__SHARE_MAX : share;
}

#endif

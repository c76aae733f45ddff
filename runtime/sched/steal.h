/* SPDX-License-Identifier: MIT */
/*
 * Steal - taking work that another worker cannot run now.
 *
 * A worker that has nothing to run steals half of another one's ring.  A worker
 * that finds another one late, since a task of it computes, also does the work
 * of the late worker's ticks: it helps.
 */
#ifndef WEFT_RUNTIME_SCHED_STEAL_H
#define WEFT_RUNTIME_SCHED_STEAL_H

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

static inline struct weft__worker *weft__peer(struct weft__worker *worker,
					      uint32_t i)
{
	struct weft_runtime *runtime = worker->runtime;

	return runtime->workers[i % runtime->workers_count];
}

/* The worker of the lowest bit that is set, in that word of the idle bits. */
static inline struct weft__worker *weft__peer_in(struct weft__worker *worker,
						 uint32_t word, uint64_t bits)
{
	return worker->runtime->workers[word * 64 +
					(uint32_t)__builtin_ctzll(bits)];
}

/* Has the worker a task that another one could take, but for the hand-off
 * slot's? */
static inline bool weft__has_work(struct weft__worker *worker)
{
	return weft__runq_visible(&worker->runq) ||
	       weft__runq_visible(&worker->outbound) ||
	       weft__spawn_queue_count(
		       &worker->spawn_queue); /* mutate: recheck */
}

/* Takes half of a ring of the victim's, at most `max` tasks.  Returns the
 * oldest, to run now; the others are in the worker's own ring. */
struct weft__task *weft__steal(struct weft__worker *worker,
			       struct weft__worker *victim, uint32_t max);

void weft__help_if_late(struct weft__worker *worker, struct weft__worker *other,
			uint64_t now_ns);

/* A busy worker's look at one other, in rotation. */
void weft__help_next(struct weft__worker *worker, uint64_t now_ns);

#endif

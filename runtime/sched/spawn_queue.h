/* SPDX-License-Identifier: MIT */
/*
 * Fresh tasks - those that a worker has started, that have never run, and for
 * which its ring has no room: a list under a lock, which also thieves take.
 *
 * A task that begins takes a stack.  Which of them begins next therefore
 * decides how many stacks there are: a tree of a million tasks, oldest first,
 * has a hundred thousand of them waiting for their children at once, and newest
 * first about as many as the tree is deep.  So the owner begins the newest when
 * its ring is empty, and thieves take the oldest, which have most of a tree
 * beneath them (Blumofe and Leiserson, "Scheduling multithreaded computations
 * by work stealing", 1999).
 *
 * That the oldest do not wait for ever, some of them begin at the turn of what
 * is not in the ring: many at each while those that began run on and on, and
 * fewer while they come to their ends: some while the ring is never empty, else
 * four at one in 8 turns, or every 0.25 ms.  And once tasks that run overflow,
 * those that never ran are part of the one queue in age (worker.h).
 *
 *   F1  A task in the list is in nobody else's hands: it has never run, cannot
 *       wait, and so is not woken.
 *   F2  Whoever has the lock finds as many in the list as `count` says.  Each
 *       task leaves it once, to one alone, who has it in a queue that he owns,
 *       or runs it, before he parks.
 *   F3  Nobody parks past the list.  Who pushes writes `count`, then asks by a
 *       read-modify-write whom to wake, at the end of its tick at the latest; a
 *       parker announces itself by one, then reads `count`.  So either the
 *       parker reads what was written, though relaxed, or who pushed finds it.
 *       [idle.push]
 *
 * Modelled in tests/model/model_spawn_queue.c.
 */
#ifndef WEFT_RUNTIME_SCHED_SPAWN_QUEUE_H
#define WEFT_RUNTIME_SCHED_SPAWN_QUEUE_H

#include "runtime/sched/inject.h"

struct weft__worker;

#define WEFT__SPAWN_TURN_NS 250000u
#define WEFT__SPAWN_TURNS 8u

struct weft__spawn_queue {
	struct weft__lock lock WEFT__APART;
	struct weft__task *oldest; /* under lock; linked by next */
	struct weft__task *newest; /* under lock; linked by older */
	weft__atomic(uint32_t) count; /* written under lock */
	/* The owner's. */
	uint32_t turns;	  /* that were passed over */
	uint64_t turn_ns; /* when the oldest had their last turn */
	uint64_t polls, ended; /* the worker's counts, at the last turn */
	uint64_t taken;	       /* and when one was last taken */
};

/* A hint, but for F3. */
static inline uint32_t weft__spawn_queue_count(struct weft__spawn_queue *queue)
{
	/* relaxed: a parker's read-modify-write of [idle.push] comes before. */
	return weft__load(&queue->count, relaxed);
}

/* Adds one, the newest.  Owner only. */
void weft__spawn_queue_push(struct weft__worker *worker,
			    struct weft__task *task);

/* Takes the newest of the worker's own; some that are nearly so go into its
 * ring, which is empty.  NULL: there is none.  Owner only. */
struct weft__task *weft__spawn_queue_take(struct weft__worker *worker);

/* The turn of the oldest of the worker's own: up to so many go into its ring.
 * Returns the first, to run now; or NULL.  Owner only. */
struct weft__task *weft__spawn_queue_turn(struct weft__worker *worker,
				    uint32_t share);

/* Puts at most so many of the oldest into the ring of `worker`, and returns the
 * first of them, to run now; or NULL. */
struct weft__task *weft__spawn_queue_steal(struct weft__worker *worker,
				     struct weft__worker *victim,
				     uint32_t max);

/* Moves all of the worker's own to the end of a chain. */
void weft__spawn_queue_empty(struct weft__worker *worker,
			     struct weft__chain *chain);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Spawn queue - the tasks that a worker has started, that never ran, and for
 * which its ring has no room: a list under a lock, from which thieves take,
 * too.
 *
 * A task that begins takes a stack.  The order in which they begin therefore
 * decides how many stacks there are.  A tree of a million tasks, oldest first,
 * has a hundred thousand of them waiting for their children at the same time;
 * newest first, about as many as the tree is deep.  So the owner begins the
 * newest when its ring is empty, and thieves take the oldest, which have most
 * of a tree beneath them (Blumofe and Leiserson, "Scheduling multithreaded
 * computations by work stealing", 1999).
 *
 * So that the oldest do not wait for ever, some of them begin at each turn of
 * work that is not in the ring.  Many begin while those that began before run
 * again and again.  Fewer begin while those come to their ends: at most 8 a
 * turn while the ring is never empty, otherwise four at one in 8 turns, or
 * every 0.25 ms.  And once tasks that run overflow, those that never ran are
 * part of the one queue in age (worker.h).
 *
 *   SPAWN1  A task in the list is in no other queue and no worker holds it: it
 *       never ran, cannot wait, and so is not woken.
 *   SPAWN2  Under the lock the list has as many tasks as `count` says.  Each
 *       task leaves it once, to one worker, which queues it in a queue of its
 *       own, or runs it, before it parks.
 *   SPAWN3  No worker parks while the list has a task that no other worker
 *       comes for.  A pusher writes `count`, then reads by a read-modify-write
 *       which worker to wake, at the end of its tick at the latest.  A parker
 *       announces itself by one, then reads `count`.  So either the parker
 *       reads what was written, though relaxed, or the pusher finds the parker.
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
	uint32_t turns;	  /* passed over so far */
	uint64_t turn_ns; /* the last turn of the oldest */
	uint64_t polls, ended; /* the worker's counts, at the last turn */
	uint64_t taken;	       /* polls, when one was last taken */
};

/* A hint, except under SPAWN3. */
static inline uint32_t weft__spawn_queue_count(struct weft__spawn_queue *queue)
{
	/* relaxed: a parker's read-modify-write of [idle.push] comes before. */
	return weft__load(&queue->count, relaxed);
}

/* Adds a task, the newest.  Owner only. */
void weft__spawn_queue_push(struct weft__worker *worker,
			    struct weft__task *task);

/* Takes the newest task of the worker's own list; the next newest go into its
 * ring, which is empty.  NULL: the list is empty.  Owner only. */
struct weft__task *weft__spawn_queue_take(struct weft__worker *worker);

/* The turn of the oldest tasks of the worker's own list: at most `share` of
 * them go into its ring.  Returns the first, to run now; or NULL.  Owner
 * only. */
struct weft__task *weft__spawn_queue_turn(struct weft__worker *worker,
				    uint32_t share);

/* Puts at most `max` of the victim's oldest tasks into the ring of `worker`.
 * Returns the first of them, to run now; or NULL. */
struct weft__task *weft__spawn_queue_steal(struct weft__worker *worker,
				     struct weft__worker *victim,
				     uint32_t max);

/* Moves all tasks of the worker's own list to the end of a chain. */
void weft__spawn_queue_empty(struct weft__worker *worker,
			     struct weft__chain *chain);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Future room - the part of a future outside its record: the nodes of its
 * waits, and its deadlines.  Few futures need it, so it is allocated on demand.
 */
#ifndef WEFT_RUNTIME_SCHED_FUTURE_ROOM_H
#define WEFT_RUNTIME_SCHED_FUTURE_ROOM_H

#include "runtime/sched/waiter.h"

struct weft__future_room {
	struct weft__alarm alarm; /* of a deadline; or to try again */
	struct weft__wait wait;
	struct weft__waiter waiter;
	uint64_t own_ns;       /* its own deadline, and */
	uint64_t inherited_ns; /* that of where it was started */
	uint64_t reported_ns;  /* the last one that passed and caused a poll */
};

/* The future that is polled, or NULL. */
static inline struct weft__task *weft__polled(struct weft__worker *worker)
{
	return worker ? worker->polled : NULL;
}

/* Turns a new task's record into that of a future. */
static inline void weft__future_init(struct weft__task *task)
{
	/* relaxed: published by the queue that it enters. */
	weft__or(&task->state, WEFT__FUTURE, relaxed);
	task->awaits = WEFT__AWAITS_BEGIN;
	task->room = NULL;
}

/* The earliest of the future's deadlines. */
static inline uint64_t weft__future_deadline(const struct weft__task *task)
{
	struct weft__future_room *room = task->room;

	if (!room)
		return WEFT_NEVER;
	return room->own_ns < room->inherited_ns ? room->own_ns :
						   room->inherited_ns;
}

/* A future inherits a deadline.  0 or -ENOMEM. */
int weft__future_inherit(struct weft_runtime *runtime, struct weft__task *task,
			 uint64_t deadline_ns);

/* The future's room, allocated now if need be; NULL: no memory. */
struct weft__future_room *weft__future_room(struct weft_runtime *runtime,
					    struct weft__task *task);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Future room - what a future keeps beside its record: the nodes of its waits,
 * and its deadlines.  Few futures need it, so it is allocated on demand.
 */
#ifndef WEFT_RUNTIME_SCHED_FUTURE_ROOM_H
#define WEFT_RUNTIME_SCHED_FUTURE_ROOM_H

#include "runtime/sched/waiter.h"

struct weft__future_room {
	struct weft__alarm alarm; /* of a deadline; or to try once more */
	struct weft__wait wait;
	struct weft__waiter waiter;
	uint64_t own_ns;       /* its own deadline, and */
	uint64_t inherited_ns; /* that of where it was started */
	uint64_t told_ns; /* the last that has passed and had it polled */
};

/* The future that is polled, or NULL. */
static inline struct weft__task *weft__polled(struct weft__worker *worker)
{
	return worker ? worker->polled : NULL;
}

/* A record that was begun becomes that of a future. */
static inline void weft__future_init(struct weft__task *task)
{
	/* relaxed: published by the queue that it enters. */
	weft__or(&task->state, WEFT__FUTURE, relaxed);
	task->awaits = WEFT__AWAITS_BEGIN;
	task->room = NULL;
}

/* The earliest of its deadlines. */
static inline uint64_t weft__future_deadline(const struct weft__task *task)
{
	struct weft__future_room *room = task->room;

	if (!room)
		return WEFT_NEVER;
	return room->own_ns < room->inherited_ns ? room->own_ns :
						   room->inherited_ns;
}

/* A future inherits a deadline.  0 or -ENOMEM. */
int weft__future_inherit(struct weft__task *task, uint64_t deadline_ns);

/* Its memory for what does not fit into the record; NULL: there is none. */
struct weft__future_room *weft__future_room(struct weft__task *task);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Awaiting by a future what is granted: as weft__waiter_wait(), with the waiter
 * in the future's room.
 *
 *	r = weft__await_enter(WEFT__AWAITS_GRANT, waiters, with, &worker,
 *			      &task);
 *	if (r < 0)
 *		return r;
 *	if (task->awaits == WEFT__AWAITS_GRANT)
 *		return weft__await_granted(worker, task, waiters, lock);
 *	r = weft__await_room(worker, task);
 *	if (r < 0)
 *		return r;
 *	lock; can it be had at once?  Else weft__await_in(...); unlock
 *	return had ? weft__await_end(worker, task, 0) : WEFT_PENDING;
 */
#ifndef WEFT_RUNTIME_SYNC_AWAIT_GRANT_H
#define WEFT_RUNTIME_SYNC_AWAIT_GRANT_H

#include "runtime/future/future.h"

/* It begins to await a grant, before the object is locked.  0, -ENOMEM. */
int weft__await_room(struct weft__worker *worker, struct weft__task *task);

/* Queues it, under the lock.  What it wants is the caller's to add. */
struct weft__waiter *weft__await_in(struct weft__worker *worker,
				    struct weft__task *task,
				    struct weft__waiters *waiters,
				    enum weft__on on, const void *object);

/* The outcome; or why it was interrupted: it has left the queue, and nothing is
 * granted to it; or WEFT_PENDING. */
int weft__await_granted(struct weft__worker *worker, struct weft__task *task,
			struct weft__waiters *waiters, struct weft__lock *lock);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Await grant - a future awaits a grant: as weft__waiter_wait(), with the
 * waiter in the future's room.
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
 *	lock; if it cannot be had now, weft__await_in(...); unlock
 *	return had ? weft__await_end(worker, task, 0) : WEFT_PENDING;
 */
#ifndef WEFT_RUNTIME_SYNC_AWAIT_GRANT_H
#define WEFT_RUNTIME_SYNC_AWAIT_GRANT_H

#include "runtime/future/future.h"

/* Begins to await a grant, before the object is locked.  0, -ENOMEM. */
int weft__await_room(struct weft__worker *worker, struct weft__task *task);

/* Queues the future, under the lock.  The caller sets waiter.want. */
struct weft__waiter *weft__await_in(struct weft__worker *worker,
				    struct weft__task *task,
				    struct weft__waiters *waiters,
				    enum weft__on on, const void *object);

/* The outcome of the grant; or the error of an interruption: the future has
 * left the queue, and no grant can come; or WEFT_PENDING. */
int weft__await_granted(struct weft__worker *worker, struct weft__task *task,
			struct weft__waiters *waiters, struct weft__lock *lock);

#endif

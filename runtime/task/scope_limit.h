/* SPDX-License-Identifier: MIT */
/*
 * Scope limit - a limit on the number of tasks that a scope has at one time.
 *
 * Each task of a limited scope has a place from before it is started until it
 * has returned.  A task that finds no free place waits in turn, and is given
 * the place of a task that ends.  That place is not free in between, so no task
 * overtakes a waiter.
 *
 *	weft_go() --- a place is free ---------> started
 *	    |                                      ^
 *	    '--- none --> starters --- one ends ---'
 *	                     |
 *	                     '--- interrupted, scope cancelled --> error
 *
 *   LIM1  `tasks` counts the tasks that have a place and those about to be
 *       started, all of which are marked TOLD.
 *   LIM2  While a task waits no place is free.
 *   LIM3  No task waits in a cancelled scope, and no task waits for itself: a
 *       task that is in the scope, or below it, is refused.
 *
 * All of it is under the scope's lock.
 */
#ifndef WEFT_RUNTIME_TASK_SCOPE_LIMIT_H
#define WEFT_RUNTIME_TASK_SCOPE_LIMIT_H

#include "runtime/sched/waiter.h"
#include "runtime/task/scope.h"

struct weft__limit {
	struct weft__waiters starters;
	uint32_t tasks;
	uint32_t tasks_max;
} __attribute__((may_alias));

static inline struct weft__limit *weft__limit(struct weft__scope *s)
{
	_Static_assert(sizeof(struct weft__limit) == sizeof(s->limit_words),
		       "the scope has room for it");
	return (void *)s->limit_words;
}

/* Takes a place for a task that the running task is about to start; waits for
 * one if necessary.  0, -EAGAIN, -ECANCELED, -ETIMEDOUT. */
int weft__limit_enter(struct weft__scope *s);

/* Passes a place on to a waiter, or frees it. */
void weft__limit_leave(struct weft__scope *s);

/* The scope is cancelled: returns its waiters.  The caller holds the scope's
 * lock, and calls weft__limit_refuse() for them after it has dropped the
 * lock. */
struct weft__waiter *weft__limit_clear(struct weft__scope *s);
void weft__limit_refuse(struct weft__worker *worker,
			struct weft__waiter *first);

#endif

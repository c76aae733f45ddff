/* SPDX-License-Identifier: MIT */
/*
 * Limit - how many tasks of a scope there may be at once.
 *
 * Each task of a limited scope has a place from before it is started until it
 * has returned.  Who finds none waits in turn, and is given the place of one
 * that ends: it is not free in between, so nobody overtakes who waits.
 *
 *	weft_go() --- a place is free ---------> started
 *	    |                                      ^
 *	    '--- none --> starters --- one ends ---'
 *	                     |
 *	                     '--- interrupted, scope cancelled --> error
 *
 *   M1  `tasks` counts the tasks that have a place and those about to be
 *       started, all of which are TOLD.
 *   M2  While anybody waits no place is free.
 *   M3  Nobody waits in a cancelled scope, and nobody waits for himself: a task
 *       that is in the scope, or below it, is refused.
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

/* The running task wants to start one, and waits for a place.  0, -EAGAIN,
 * -ECANCELED, -ETIMEDOUT. */
int weft__limit_enter(struct weft__scope *s);

/* A place is given on, or back. */
void weft__limit_leave(struct weft__scope *s);

/* The scope is cancelled: those that wait, for weft__limit_refuse() once its
 * lock, which is held now, was dropped. */
struct weft__waiter *weft__limit_clear(struct weft__scope *s);
void weft__limit_refuse(struct weft__worker *worker,
			struct weft__waiter *first);

#endif

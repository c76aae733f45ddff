/* SPDX-License-Identifier: MIT */
/* Scope limit - see the header for the model and LIM1 to LIM3. */
#include "runtime/task/scope_limit.h"

#include <errno.h>

/* The grant of a waiter. */
enum { PLACE, REFUSAL };

/* Whether the task is in the scope, or below it.  The scopes and tasks above
 * the task stay in place while it runs. */
static bool scope_holds(struct weft__scope *s, struct weft__task *task)
{
	for (; task; task = weft__scope(task->scope)->owner)
		if (weft__scope(task->scope) == s)
			return true;
	return false;
}

int weft__limit_enter(struct weft__scope *s)
{
	struct weft__limit *limit = weft__limit(s);
	struct weft__worker *worker;
	struct weft__waiter w;
	struct weft__wait wait;
	struct weft__task *self;
	bool inside, waits = false;
	int r = 0;

	worker = weft__worker_self();
	self = weft__self(worker);
	if (self == worker->current)
		r = weft__sync_enter(&worker);
	if (r < 0)
		return r;
	/* A future cannot wait for a place either. */
	inside = self != worker->current ||
		 (s->owner != self && scope_holds(s, self));
	weft__lock_take(&s->lock);
	if (weft__scope_is(s, WEFT__SCOPE_CANCELLED)) {
		r = -ECANCELED;
	} else if (limit->tasks < limit->tasks_max) {
		limit->tasks++;
	} else if (inside) {
		r = -EAGAIN;
	} else {
		waits = true;
		weft__waiter_init(&w, &wait, worker, NULL, 1);
		weft__wait_on(&wait, WEFT__ON_LIMIT, s);
		weft__waiters_add(&limit->starters, &w);
	}
	weft__lock_drop(&s->lock);
	if (waits)
		r = weft__waiter_wait(&w, &limit->starters, &s->lock);
	return r == REFUSAL ? -ECANCELED : r;
}

/* The waiter that gets a place that is free now, or NULL; under the lock. */
static struct weft__waiter *limit_next(struct weft__limit *limit)
{
	struct weft__waiter *w = NULL;

	if (limit->tasks < limit->tasks_max)
		w = weft__waiters_take(&limit->starters);
	if (w)
		limit->tasks++;
	return w;
}

void weft__limit_leave(struct weft__scope *s)
{
	struct weft__limit *limit = weft__limit(s);
	struct weft__waiter *w;

	weft__lock_take(&s->lock);
	limit->tasks--;
	w = limit_next(limit);
	weft__lock_drop(&s->lock);
	if (w)
		weft__waiter_grant(weft__worker_self(), w,
				   PLACE); /* mutate: wake */
}

struct weft__waiter *weft__limit_clear(struct weft__scope *s)
{
	return weft__waiters_take_all(&weft__limit(s)->starters);
}

void weft__limit_refuse(struct weft__worker *worker,
			struct weft__waiter *first)
{
	weft__waiters_grant(worker, first, REFUSAL); /* mutate: wake */
}

/* 0, or the reason why the running task may not set a limit. */
static int limit_settable(struct weft__scope *s, unsigned tasks_max)
{
	if (s->owner != weft__running(weft__worker_self()))
		return -EPERM;
	if (tasks_max == 0)
		return -EINVAL;
	/* relaxed: no other task starts one meanwhile. */
	if (!weft__scope_is(s, WEFT__SCOPE_LIMITED) &&
	    weft__load(&s->pending, relaxed) + s->started != 0)
		return -EBUSY;
	return 0;
}

int weft_scope_limit(struct weft_scope *scope, unsigned tasks_max)
{
	struct weft__scope *s = weft__scope_open(scope);
	struct weft__limit *limit = weft__limit(s);
	struct weft__waiter *first = NULL, **link = &first;
	int error = limit_settable(s, tasks_max);

	if (error < 0)
		return error;
	weft__lock_take(&s->lock);
	limit->tasks_max = tasks_max;
	weft__scope_mark(s, WEFT__SCOPE_LIMITED);
	while ((*link = limit_next(limit)))
		link = &(*link)->next;
	weft__lock_drop(&s->lock);
	weft__waiters_grant(weft__worker_self(), first,
			    PLACE); /* mutate: wake */
	return 0;
}

int weft_scope_wait_room(struct weft_scope *scope)
{
	struct weft__scope *s = weft__scope_open(scope);
	int error;

	if (!weft__running(weft__worker_self()))
		return -EPERM;
	error = weft__scope_admit(s);
	if (error == 0)
		weft__scope_dismiss(s);
	return error;
}

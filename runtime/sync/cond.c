/* SPDX-License-Identifier: MIT */
/*
 * Condition - a waiter is queued before its mutex is unlocked: a task that
 * changes the condition under that mutex finds it.
 */
#include "runtime/sync/mutex.h"

struct cond {
	struct weft__lock lock;
	uint32_t reserved;
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved2;
} __attribute__((may_alias));

_Static_assert(sizeof(struct cond) == sizeof(struct weft_cond),
	       "the public struct has room for it");

static struct cond *cond_of(struct weft_cond *cond)
{
	return (struct cond *)(void *)cond;
}

int weft_cond_wait(struct weft_cond *cond, struct weft_mutex *mutex)
{
	struct cond *c = cond_of(cond);
	struct weft__worker *worker = weft__sync_worker();
	struct weft__wait wait;
	struct weft__waiter w;
	int r = 0;

	if (worker)
		r = weft__running(worker) ?
			    weft__interrupted(worker, worker->current) :
			    -EPERM;
	if (r < 0)
		return r;
	weft__waiter_init(&w, &wait, worker, NULL, 0);
	weft__wait_on(&wait, WEFT__ON_CONDITION, c);
	weft__lock_take(&c->lock);
	weft__waiters_add(&c->waiters, &w);
	weft__lock_drop(&c->lock);
	weft_mutex_unlock(mutex);
	r = weft__waiter_wait(&w, &c->waiters, &c->lock);
	weft__mutex_lock(mutex, weft__sync_worker());
	return r;
}

void weft_cond_signal(struct weft_cond *cond)
{
	struct cond *c = cond_of(cond);
	struct weft__waiter *w;

	weft__lock_take(&c->lock);
	w = weft__waiters_take(&c->waiters);
	weft__lock_drop(&c->lock);
	if (w)
		/* mutate: wake */
		weft__waiter_grant(weft__sync_worker(), w, 0);
}

void weft_cond_broadcast(struct weft_cond *cond)
{
	struct cond *c = cond_of(cond);

	weft__lock_take(&c->lock);
	weft__wake_in(&c->waiters, &c->lock);
}

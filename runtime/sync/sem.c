/* SPDX-License-Identifier: MIT */
/*
 * Semaphore - permits, granted in the order in which they were asked for.
 *
 *   P1  The oldest that waits wants more than is free.  Whatever changes one of
 *       the two, permits that come or a waiter that leaves, grants what fits.
 */
#include <weft/sync.h>

#include "runtime/sync/await.h"

struct sem {
	struct weft__lock lock;
	uint32_t reserved;
	uint64_t permits; /* under lock */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved2[4];
} __attribute__((may_alias));

_Static_assert(sizeof(struct sem) == sizeof(struct weft_sem),
	       "the public struct has room for it");

static struct sem *sem_of(const struct weft_sem *sem)
{
	return (struct sem *)(uintptr_t)sem;
}

/* Takes out of the queue who can have what he wants; under the lock. */
static struct weft__waiter *sem_serve(struct sem *s)
{
	struct weft__waiter *first = NULL, **link = &first, *w;

	/* mutate: retry */
	while ((w = s->waiters.head) && w->want <= s->permits) {
		s->permits -= w->want;
		weft__waiters_remove(&s->waiters, w);
		*link = w;
		link = &w->next;
	}
	*link = NULL;
	return first;
}

/* One has given up, and those behind may want less (P1). */
static void sem_left(struct sem *s)
{
	struct weft__waiter *others;

	weft__lock_take(&s->lock);
	others = sem_serve(s);
	weft__lock_drop(&s->lock);
	weft__waiters_grant(weft__sync_worker(), others, 0); /* mutate: wake */
}

/* Called with the lock, which is dropped. */
static int sem_wait(struct sem *s, struct weft__worker *worker, uint32_t n)
{
	struct weft__wait wait;
	struct weft__waiter w;
	int r;

	weft__waiter_init(&w, &wait, worker, NULL, n);
	weft__wait_on(&wait, WEFT__ON_SEMAPHORE, s);
	weft__waiters_add(&s->waiters, &w);
	weft__lock_drop(&s->lock);
	r = weft__waiter_wait(&w, &s->waiters, &s->lock);
	if (weft__unlikely(r < 0))
		sem_left(s);
	return r;
}

static inline bool sem_take(struct sem *s, uint32_t n)
{
	if (weft__unlikely(s->waiters.head || s->permits < n))
		return false;
	s->permits -= n;
	return true;
}

int weft_sem_acquire(struct weft_sem *sem, uint32_t n)
{
	struct sem *s = sem_of(sem);
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);

	if (weft__unlikely(error < 0))
		return error;
	weft__lock_take(&s->lock);
	if (weft__unlikely(!sem_take(s, n)))
		return sem_wait(s, worker, n);
	weft__lock_drop(&s->lock);
	return 0;
}

static int sem_await(struct sem *s, struct weft__worker *worker,
		     struct weft__task *task, uint32_t n)
{
	int r = weft__await_room(worker, task);
	bool taken;

	if (r < 0)
		return r;
	weft__lock_take(&s->lock);
	taken = sem_take(s, n);
	if (!taken)
		weft__await_in(worker, task, &s->waiters, WEFT__ON_SEMAPHORE, s)
			->want = n;
	weft__lock_drop(&s->lock);
	return taken ? weft__await_end(worker, task, 0) : WEFT_PENDING;
}

int weft_await_sem_acquire(struct weft_sem *sem, uint32_t n)
{
	struct sem *s = sem_of(sem);
	struct weft__worker *worker;
	struct weft__task *task;
	int r = weft__await_enter(WEFT__AWAITS_GRANT, &worker, &task);

	if (r < 0)
		return r;
	if (task->awaits == WEFT__AWAITS_NOTHING)
		return sem_await(s, worker, task, n);
	r = weft__await_granted(worker, task, &s->waiters, &s->lock);
	if (r < 0 && r != WEFT_PENDING)
		sem_left(s);
	return r;
}

int weft_sem_try_acquire(struct weft_sem *sem, uint32_t n)
{
	struct sem *s = sem_of(sem);
	bool taken;

	weft__lock_take(&s->lock);
	taken = sem_take(s, n);
	weft__lock_drop(&s->lock);
	return taken ? 0 : -EAGAIN;
}

void weft_sem_release(struct weft_sem *sem, uint32_t n)
{
	struct sem *s = sem_of(sem);
	struct weft__waiter *granted = NULL;

	weft__lock_take(&s->lock);
	weft__assert(s->permits + n >= n, "a semaphore has too many permits");
	s->permits += n;
	if (weft__unlikely(s->waiters.head != NULL))
		granted = sem_serve(s);
	weft__lock_drop(&s->lock);
	if (granted)
		/* mutate: wake */
		weft__waiters_grant(weft__sync_worker(), granted, 0);
}

uint64_t weft_sem_count(const struct weft_sem *sem)
{
	struct sem *s = sem_of(sem);
	uint64_t permits;

	weft__lock_take(&s->lock);
	permits = s->permits;
	weft__lock_drop(&s->lock);
	return permits;
}

/* SPDX-License-Identifier: MIT */
/*
 * Reader-writer lock - granted in the order of requests: the waiter at the head
 * gets the lock as soon as possible; if it is a reader, so do the readers
 * directly behind it.
 *
 *   RW1  The oldest waiter cannot have the lock: it is a writer while any task
 *       holds the lock, or a reader while a writer holds it.  A call that
 *       changes that, an unlock or a waiter that leaves, serves the head.
 */
#include <weft/sync.h>

#include "runtime/sync/inspect.h"
#include "runtime/sync/mutex.h"

enum { READ, WRITE };

struct rwlock {
	struct weft__lock lock;
	uint64_t writer;  /* under lock: as a mutex's owner; 0: none */
	uint64_t readers; /* under lock */
	struct weft__waiters waiters; /* under lock; want: READ or WRITE */
	uint64_t reserved[3];
} __attribute__((may_alias));

_Static_assert(sizeof(struct rwlock) == sizeof(struct weft_rwlock),
	       "the public struct has room for it");

static struct rwlock *rwlock_of(struct weft_rwlock *rwlock)
{
	return (struct rwlock *)(void *)rwlock;
}

uint64_t weft__rwlock_writer(const void *rwlock, uint64_t *ret_readers)
{
	struct rwlock *l = (void *)(uintptr_t)rwlock;
	uint64_t writer;

	weft__lock_take(&l->lock);
	writer = l->writer;
	*ret_readers = l->readers;
	weft__lock_drop(&l->lock);
	return writer;
}

/* Takes the lock for that task; NULL: for a thread.  A reader's task is
 * ignored. */
static bool rwlock_take(struct rwlock *l, uint32_t want,
			struct weft__task *task)
{
	if (l->writer || (want == WRITE && l->readers))
		return false;
	if (want == WRITE)
		l->writer = weft__owner_of(task);
	else
		l->readers++;
	return true;
}

/* Takes the waiters that can have the lock out of the queue; under the inner
 * lock. */
static struct weft__waiter *rwlock_serve(struct rwlock *l)
{
	struct weft__waiter *first = NULL, **link = &first, *w;

	/* mutate: retry */
	while ((w = l->waiters.head) &&
	       rwlock_take(l, w->want, w->wait->task)) {
		weft__waiters_remove(&l->waiters, w);
		*link = w;
		link = &w->next;
	}
	*link = NULL;
	return first;
}

static void rwlock_serve_and_grant(struct rwlock *l)
{
	struct weft__waiter *granted = rwlock_serve(l);

	weft__lock_drop(&l->lock);
	weft__waiters_grant(weft__sync_worker(), granted, 0); /* mutate: wake */
}

static int rwlock_lock(struct weft_rwlock *rwlock, uint32_t want)
{
	struct rwlock *l = rwlock_of(rwlock);
	struct weft__worker *worker;
	struct weft__wait wait;
	struct weft__waiter w;
	int r = weft__sync_enter(&worker);

	if (weft__unlikely(r < 0))
		return r;
	weft__lock_take(&l->lock);
	if (weft__likely(!l->waiters.head &&
			 rwlock_take(l, want, weft__self(worker)))) {
		weft__lock_drop(&l->lock);
		return 0;
	}
	weft__waiter_init(&w, &wait, worker, NULL, want);
	weft__wait_on(&wait,
		      want == READ ? WEFT__ON_READ_LOCK : WEFT__ON_WRITE_LOCK,
		      l);
	weft__waiters_add(&l->waiters, &w);
	weft__lock_drop(&l->lock);
	r = weft__waiter_wait(&w, &l->waiters, &l->lock);
	if (weft__likely(r == 0))
		return 0;
	/* RW1: if a writer leaves, readers behind it may have the lock. */
	weft__lock_take(&l->lock);
	rwlock_serve_and_grant(l);
	return r;
}

static int rwlock_try(struct weft_rwlock *rwlock, uint32_t want)
{
	struct rwlock *l = rwlock_of(rwlock);
	struct weft__task *task =
		want == WRITE ? weft__self(weft__worker_self()) : NULL;
	bool taken;

	weft__lock_take(&l->lock);
	taken = !l->waiters.head && rwlock_take(l, want, task);
	weft__lock_drop(&l->lock);
	return taken ? 0 : -EBUSY;
}

int weft_rwlock_read(struct weft_rwlock *rwlock)
{
	return rwlock_lock(rwlock, READ);
}

int weft_rwlock_write(struct weft_rwlock *rwlock)
{
	return rwlock_lock(rwlock, WRITE);
}

int weft_rwlock_try_read(struct weft_rwlock *rwlock)
{
	return rwlock_try(rwlock, READ);
}

int weft_rwlock_try_write(struct weft_rwlock *rwlock)
{
	return rwlock_try(rwlock, WRITE);
}

void weft_rwlock_unlock(struct weft_rwlock *rwlock)
{
	struct rwlock *l = rwlock_of(rwlock);

	weft__lock_take(&l->lock);
	weft__assert(l->writer || l->readers,
		     "a reader-writer lock was unlocked that no task holds");
	weft__assert(!l->writer ||
			     l->writer == weft__owner_self(weft__sync_worker()),
		     "a reader-writer lock was unlocked by one that does not "
		     "hold it");
	if (l->writer)
		l->writer = 0;
	else
		l->readers--;
	if (weft__unlikely(l->waiters.head != NULL))
		rwlock_serve_and_grant(l);
	else
		weft__lock_drop(&l->lock);
}

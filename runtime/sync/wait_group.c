/* SPDX-License-Identifier: MIT */
/*
 * Wait group and barrier - waiters go on when a number is reached.
 *
 * Both are a lock, a number and a list of waiters, all in the public struct.  A
 * wait group wakes its waiters when its count falls to 0.  A barrier wakes them
 * when its last party comes, and begins again; a waiter that is interrupted
 * before that leaves the list and is no longer counted.
 */
#include <weft/sync.h>

#include "runtime/sched/waiter.h"
#include "runtime/sync/inspect.h"

struct count {
	struct weft__lock lock;
	uint32_t reserved;
	uint64_t left; /* under lock */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved2[2];
} __attribute__((may_alias));

_Static_assert(sizeof(struct count) == sizeof(struct weft_wait_group),
	       "the public struct has room for it");

struct barrier {
	struct weft__lock lock;
	uint32_t reserved;
	uint64_t parties; /* immutable */
	uint64_t came;	  /* under lock */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved2;
} __attribute__((may_alias));

_Static_assert(sizeof(struct barrier) == sizeof(struct weft_barrier),
	       "the public struct has room for it");

static struct count *count_of(struct weft_wait_group *count)
{
	return (struct count *)(void *)count;
}

static struct barrier *barrier_of(struct weft_barrier *barrier)
{
	return (struct barrier *)(void *)barrier;
}

void weft_wait_group_add(struct weft_wait_group *count, uint32_t n)
{
	struct count *c = count_of(count);

	weft__lock_take(&c->lock);
	c->left += n;
	weft__lock_drop(&c->lock);
}

void weft_wait_group_done(struct weft_wait_group *count)
{
	struct count *c = count_of(count);

	weft__lock_take(&c->lock);
	weft__assert(c->left > 0, "more was done than had been counted");
	if (--c->left == 0)
		weft__wake_in(&c->waiters, &c->lock);
	else
		weft__lock_drop(&c->lock);
}

int weft_wait_group_wait(struct weft_wait_group *count)
{
	struct count *c = count_of(count);
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);

	if (weft__unlikely(error < 0))
		return error;
	weft__lock_take(&c->lock);
	if (c->left == 0) {
		weft__lock_drop(&c->lock);
		return 0;
	}
	return weft__wait_in(&c->waiters, &c->lock, worker, WEFT__ON_COUNT, c);
}

uint64_t weft__count_left(const void *count)
{
	struct count *c = (void *)(uintptr_t)count;
	uint64_t left;

	weft__lock_take(&c->lock);
	left = c->left;
	weft__lock_drop(&c->lock);
	return left;
}

/* Waits for the others; called with the lock, which is dropped. */
static int barrier_wait(struct barrier *b, struct weft__worker *worker)
{
	struct weft__wait wait;
	struct weft__waiter w;
	int r;

	weft__waiter_init(&w, &wait, worker, NULL, 0);
	weft__wait_on(&wait, WEFT__ON_BARRIER, b);
	weft__waiters_add(&b->waiters, &w);
	weft__lock_drop(&b->lock);
	r = weft__wait(&wait, true);
	if (weft__likely(r == 0))
		return 0;
	weft__lock_take(&b->lock);
	if (!w.queued) { /* mutate: recheck=false */
		weft__lock_drop(&b->lock);
		return weft__wait(&wait, false);
	}
	weft__waiters_remove(&b->waiters, &w);
	b->came--;
	weft__lock_drop(&b->lock);
	return r;
}

int weft_barrier_wait(struct weft_barrier *barrier)
{
	struct barrier *b = barrier_of(barrier);
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);

	if (weft__unlikely(error < 0))
		return error;
	weft__assert(b->parties > 0, "a barrier for no parties");
	weft__lock_take(&b->lock);
	if (++b->came < b->parties)
		return barrier_wait(b, worker);
	b->came = 0;
	weft__wake_in(&b->waiters, &b->lock);
	return 1;
}

uint64_t weft__barrier_came(const void *barrier, uint64_t *ret_parties)
{
	struct barrier *b = (void *)(uintptr_t)barrier;
	uint64_t came;

	weft__lock_take(&b->lock);
	came = b->came;
	weft__lock_drop(&b->lock);
	*ret_parties = b->parties;
	return came;
}

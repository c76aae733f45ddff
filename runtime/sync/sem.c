/* SPDX-License-Identifier: MIT */
/*
 * Semaphore - permits, granted in the order in which they were asked for.
 *
 * The word holds the number of free permits, and whether waiters may be queued.
 * While none is, taking permits is one compare-and-swap, and giving them
 * another; otherwise everything happens under the lock.
 *
 * Invariants
 *   SEM1  The oldest waiter wants more than is free.  A call that changes
 *       either, by adding permits or removing a waiter, grants what then fits.
 *   SEM2  QUEUED is set before a waiter is queued.  While it is set, only a
 *       holder of the lock changes the word.
 *   SEM3  After a release has made permits available to be taken in one step,
 *       it does not touch the semaphore, except while a waiter still has to
 *       return from its call: the task that takes the permits may free the
 *       memory.
 *
 * Orderings
 *   [sem.give]  the word, swapped or stored release -> swapped acquire by the
 *       task that takes: what was done before the permits were given.  A task
 *       that sets QUEUED acquires too; the lock carries what it has seen to
 *       those that store the word later.
 */
#include <weft/sync.h>

#include "runtime/sync/await_grant.h"

#define SEM_QUEUED ((uint64_t)1 << 63)
#define SEM_TOO_MANY "a semaphore has too many permits"

struct sem {
	struct weft__lock lock;
	uint32_t reserved;
	weft__atomic(uint64_t) word;  /* permits, and SEM_QUEUED */
	struct weft__waiters waiters; /* under lock */
	uint64_t reserved2[4];
} __attribute__((may_alias));

_Static_assert(sizeof(struct sem) == sizeof(struct weft_sem),
	       "the public struct has room for it");

static struct sem *sem_of(const struct weft_sem *sem)
{
	return (struct sem *)(uintptr_t)sem;
}

/* ---- In one step, while no task is queued -------------------------------- */

static inline bool sem_take(struct sem *s, uint32_t n)
{
	/* relaxed: the swap decides. */
	uint64_t word = weft__load(&s->word, relaxed);

	while (weft__likely(!(word & SEM_QUEUED) && word >= n))
		/* pairs: [sem.give] */
		if (weft__likely(weft__cas(&s->word, &word, word - n, acquire)))
			return true;
	return false;
}

static inline bool sem_give(struct sem *s, uint32_t n)
{
	/* relaxed: the swap decides. */
	uint64_t word = weft__load(&s->word, relaxed);

	while (weft__likely(!(word & SEM_QUEUED))) {
		weft__assert(word + n < SEM_QUEUED, SEM_TOO_MANY);
		/* pairs: [sem.give] */
		if (weft__likely(weft__cas(&s->word, &word, word + n, release)))
			return true;
	}
	return false;
}

/* ---- With the lock ------------------------------------------------------- */

/* Takes n permits if they are free and no task waits; otherwise sets QUEUED
 * (SEM2). */
static bool sem_take_or_mark(struct sem *s, uint32_t n)
{
	/* relaxed: the swap decides, or SEM2. */
	uint64_t word = weft__load(&s->word, relaxed);
	bool takes;

	do {
		takes = !s->waiters.head && (word & ~SEM_QUEUED) >= n;
		if (!takes && (word & SEM_QUEUED))
			return false;
		/* pairs: [sem.give] */
	} while (!weft__cas(&s->word, &word,
			    takes ? word - n : word | SEM_QUEUED, acquire));
	return takes;
}

/* Adds n permits to those in the word.  Takes the waiters that can now have
 * what they want out of the queue, and returns them. */
static struct weft__waiter *sem_grant(struct sem *s, uint32_t n)
{
	struct weft__waiter *first = NULL, **link = &first, *w;
	/* relaxed: SEM2. */
	uint64_t permits = (weft__load(&s->word, relaxed) & ~SEM_QUEUED) + n;

	weft__assert(permits < SEM_QUEUED, SEM_TOO_MANY);
	/* mutate: retry */
	while ((w = s->waiters.head) && w->want <= permits) {
		permits -= w->want;
		weft__waiters_remove(&s->waiters, w);
		*link = w;
		link = &w->next;
	}
	*link = NULL;
	/* pairs: [sem.give] */
	weft__store(&s->word, permits | (s->waiters.head ? SEM_QUEUED : 0),
		    release);
	return first;
}

/* Gives n permits to the waiters (SEM1).  False: QUEUED is not set, and the
 * permits can be given in one step (SEM3).  If QUEUED is set with an empty
 * queue, a waiter that has left the queue is about to call this. */
static __attribute__((noinline)) bool sem_serve(struct sem *s, uint32_t n)
{
	struct weft__waiter *granted = NULL;
	bool queued;

	weft__lock_take(&s->lock);
	/* relaxed: QUEUED changes only under the lock. */
	queued = weft__load(&s->word, relaxed) & SEM_QUEUED;
	if (queued)
		granted = sem_grant(s, n);
	weft__lock_drop(&s->lock);
	if (granted)
		/* mutate: wake */
		weft__waiters_grant(weft__sync_worker(), granted, 0);
	return queued;
}

/* ---- Taking -------------------------------------------------------------- */

/* Called after the permits could not be taken in one step. */
static __attribute__((noinline)) int
sem_wait(struct sem *s, struct weft__worker *worker, uint32_t n)
{
	struct weft__wait wait;
	struct weft__waiter w;
	int r;

	weft__lock_take(&s->lock);
	if (sem_take_or_mark(s, n)) { /* mutate: recheck=false */
		weft__lock_drop(&s->lock);
		return 0;
	}
	weft__waiter_init(&w, &wait, worker, NULL, n);
	weft__wait_on(&wait, WEFT__ON_SEMAPHORE, s);
	weft__waiters_add(&s->waiters, &w);
	weft__lock_drop(&s->lock);
	r = weft__waiter_wait(&w, &s->waiters, &s->lock);
	if (weft__unlikely(r < 0))
		(void)sem_serve(s, 0); /* later waiters may want less */
	return r;
}

static __attribute__((noinline)) int sem_enter_and_wait(struct sem *s,
							uint32_t n)
{
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);

	return error < 0 ? error : sem_wait(s, worker, n);
}

int weft_sem_acquire(struct weft_sem *sem, uint32_t n)
{
	struct sem *s = sem_of(sem);
	struct weft__worker *worker = weft__sync_enter_quick();

	if (weft__unlikely(!worker))
		return sem_enter_and_wait(s, n);
	return weft__likely(sem_take(s, n)) ? 0 : sem_wait(s, worker, n);
}

static int sem_await(struct sem *s, struct weft__worker *worker,
		     struct weft__task *task, uint32_t n)
{
	int r = weft__await_room(worker, task);
	bool taken;

	if (r < 0)
		return r;
	weft__lock_take(&s->lock);
	taken = sem_take_or_mark(s, n);
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
	int r = weft__await_enter(WEFT__AWAITS_GRANT, &s->waiters, n, &worker,
				  &task);

	if (r < 0)
		return r;
	if (task->awaits == WEFT__AWAITS_NOTHING)
		return sem_await(s, worker, task, n);
	r = weft__await_granted(worker, task, &s->waiters, &s->lock);
	if (r < 0 && r != WEFT_PENDING)
		(void)sem_serve(s, 0);
	return r;
}

int weft_sem_try_acquire(struct weft_sem *sem, uint32_t n)
{
	return sem_take(sem_of(sem), n) ? 0 : -EAGAIN;
}

/* ---- Giving -------------------------------------------------------------- */

void weft_sem_release(struct weft_sem *sem, uint32_t n)
{
	struct sem *s = sem_of(sem);

	while (weft__unlikely(!sem_give(s, n))) /* mutate: retry */
		if (sem_serve(s, n))
			break;
}

uint64_t weft_sem_count(const struct weft_sem *sem)
{
	/* relaxed: a momentary value. */
	return weft__load(&sem_of(sem)->word, relaxed) & ~SEM_QUEUED;
}

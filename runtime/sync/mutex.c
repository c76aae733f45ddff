/* SPDX-License-Identifier: MIT */
#include "runtime/sync/mutex.h"

enum outcome {
	HAS_IT,
	TRY_AGAIN,
};

/* waiter.want */
enum { FIRST_TRY, PASSED_OVER };

static struct weft__mutex *mutex_of(struct weft_mutex *mutex)
{
	return (struct weft__mutex *)(void *)mutex;
}

/* Another figure than before tells that the task was suspended since. */
static uint64_t runs_now(struct weft__worker *worker)
{
	/* relaxed: the worker's own counter. */
	return worker ? weft__load(&worker->counts[WEFT__N_POLLS], relaxed) : 0;
}

static void mutex_own(struct weft__mutex *m, struct weft__worker *worker)
{
	m->owner = weft__owner_self(worker);
	m->owner_runs = runs_now(worker);
}

/* Called with the lock, which is dropped.  0, or why a wait that heeds them was
 * interrupted. */
static int mutex_wait(struct weft__mutex *m, struct weft__worker *worker,
		      bool heeds)
{
	struct weft__wait wait;
	struct weft__waiter w;
	int r;

	weft__assert(!worker || m->owner != weft__owner_self(worker),
		     "a task locked a mutex that it holds");
	weft__waiter_init(&w, &wait, worker, NULL, FIRST_TRY);
	weft__wait_on(&wait, WEFT__ON_MUTEX, m);
	weft__waiters_add(&m->waiters, &w);
	for (;;) {
		weft__lock_drop(&m->lock);
		r = heeds ? weft__waiter_wait(&w, &m->waiters, &m->lock) :
			    weft__wait(&wait, false);
		if (r < 0)
			return r;
		worker = weft__sync_worker();
		if (r == HAS_IT) {
			m->owner_runs = runs_now(worker);
			return 0;
		}
		weft__lock_take(&m->lock);
		m->called = false;
		if (!m->owner) /* mutate: recheck=true */
			break;
		weft__waiter_init(&w, &wait, worker, NULL, PASSED_OVER);
		weft__wait_on(&wait, WEFT__ON_MUTEX, m);
		weft__waiters_add_first(&m->waiters, &w);
	}
	mutex_own(m, worker);
	weft__lock_drop(&m->lock);
	return 0;
}

int weft_mutex_lock(struct weft_mutex *mutex)
{
	struct weft__mutex *m = mutex_of(mutex);
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);

	if (weft__unlikely(error < 0))
		return error;
	weft__lock_take(&m->lock);
	if (weft__unlikely(m->owner != 0))
		return mutex_wait(m, worker, true);
	mutex_own(m, worker);
	weft__lock_drop(&m->lock);
	return 0;
}

void weft__mutex_lock(struct weft_mutex *mutex, struct weft__worker *worker)
{
	struct weft__mutex *m = mutex_of(mutex);

	weft__lock_take(&m->lock);
	if (m->owner) {
		(void)mutex_wait(m, worker, false);
		return;
	}
	mutex_own(m, worker);
	weft__lock_drop(&m->lock);
}

uint64_t weft__mutex_owner(const void *mutex)
{
	struct weft__mutex *m = (void *)(uintptr_t)mutex;
	uint64_t owner;

	weft__lock_take(&m->lock);
	owner = m->owner;
	weft__lock_drop(&m->lock);
	return owner;
}

int weft_mutex_try_lock(struct weft_mutex *mutex)
{
	struct weft__mutex *m = mutex_of(mutex);
	bool taken;

	weft__lock_take(&m->lock);
	taken = m->owner;
	if (!taken)
		mutex_own(m, weft__sync_worker());
	weft__lock_drop(&m->lock);
	return taken ? -EBUSY : 0;
}

/* To whom it is handed, or who is to try again; NULL: nobody waits, or one is
 * on his way who was told so. */
static struct weft__waiter *mutex_pass(struct weft__mutex *m,
				       struct weft__worker *worker,
				       enum outcome *ret_outcome)
{
	struct weft__waiter *first = m->waiters.head;
	bool hand_over = first->want == PASSED_OVER ||
			 m->owner_runs != runs_now(worker);

	m->owner = 0;
	if (!hand_over && m->called)
		return NULL;
	first = weft__waiters_take(&m->waiters);
	if (hand_over)
		m->owner = weft__owner_of(first->wait->task);
	else
		m->called = true;
	*ret_outcome = hand_over ? HAS_IT : TRY_AGAIN;
	return first;
}

void weft_mutex_unlock(struct weft_mutex *mutex)
{
	struct weft__mutex *m = mutex_of(mutex);
	struct weft__worker *worker = weft__sync_worker();
	struct weft__waiter *first = NULL;
	enum outcome outcome = HAS_IT;

	weft__lock_take(&m->lock);
	weft__assert(m->owner == weft__owner_self(worker),
		     "a mutex was unlocked by one that does not hold it");
	if (weft__unlikely(m->waiters.head != NULL))
		first = mutex_pass(m, worker, &outcome);
	else
		m->owner = 0;
	weft__lock_drop(&m->lock);
	if (first)
		weft__waiter_grant(worker, first, outcome); /* mutate: wake */
}

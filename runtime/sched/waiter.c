/* SPDX-License-Identifier: MIT */
/*
 * Waiter - the wait of a task or a thread, and the grants that end it.
 *
 * A task suspends until its word is granted; a thread sleeps on the word with a
 * futex.  A grant stores the word and then wakes.  While a worker of the task's
 * own runtime grants, that runtime cannot end; every other grant holds a
 * reference to the runtime (runtime_ref.h).  The invariants WAIT1 to WAIT3 are
 * in waiter.h.
 */
#include "runtime/sched/waiter.h"

#include "runtime/sched/runtime_ref.h"

static bool granted(struct weft__wait *wait, uint32_t *ret_word)
{
	/* pairs: [waiter.grant] */
	*ret_word = weft__load(&wait->word, acquire);
	return *ret_word >= WEFT__WAIT_GRANTED;
}

static int thread_wait(struct weft__wait *wait)
{
	uint32_t word;

	while (!granted(wait, &word)) /* mutate: retry */
		weft__futex_wait(&wait->word, word);
	return (int)(word - WEFT__WAIT_GRANTED);
}

int weft__wait(struct weft__wait *wait, bool heeds)
{
	struct weft__worker *worker;
	struct weft__task *task = wait->task;
	uint32_t word;
	int error;

	if (weft__unlikely(!task))
		return thread_wait(wait);
	worker = weft__worker_self();
	weft__wait_begin(worker, task);
	/* mutate: retry */
	while (!granted(wait, &word)) {
		/* A task that does not heed the cancellation passes it on to
		 * its scopes: it may wait for what one of their tasks holds. */
		error = weft__interrupted(worker, task);
		if (weft__unlikely(error < 0) && heeds)
			return error;
		worker = weft__suspend(worker,
				       weft__reason(WEFT__REASON_WAIT, wait));
	}
	return (int)(word - WEFT__WAIT_GRANTED);
}

int weft__waiter_wait(struct weft__waiter *w, struct weft__waiters *queue,
		      struct weft__lock *lock)
{
	int r = weft__wait(w->wait, true);
	bool queued;

	if (weft__likely(r >= 0))
		return r;
	weft__lock_take(lock);
	queued = w->queued;
	if (queued) /* mutate: recheck=false */
		weft__waiters_remove(queue, w);
	weft__lock_drop(lock);
	return queued ? r : weft__wait(w->wait, false);
}

int weft__wait_in(struct weft__waiters *queue, struct weft__lock *lock,
		  struct weft__worker *worker, enum weft__on kind,
		  const void *object)
{
	struct weft__wait wait;
	struct weft__waiter w;

	weft__waiter_init(&w, &wait, worker, NULL, 0);
	weft__wait_on(&wait, kind, object);
	weft__waiters_add(queue, &w);
	weft__lock_drop(lock);
	return weft__waiter_wait(&w, queue, lock);
}

static void grant_thread(struct weft__wait *wait, uint32_t word)
{
	/* pairs: [waiter.grant] */
	weft__store(&wait->word, word, release);
	/* Uses the word's address alone: the thread may have gone on. */
	weft__futex_wake(&wait->word, 1); /* mutate: wake */
}

/* The caller is outside the task's runtime, which may end when the task has
 * gone on. */
static void grant_with_ref(struct weft__worker *here, struct weft__wait *wait,
			   uint32_t word)
{
	struct weft_runtime *runtime = wait->runtime;
	struct weft__task *task = wait->task;
	uint64_t id = wait->id;

	weft__runtime_ref(runtime);
	/* pairs: [waiter.grant] */
	weft__store(&wait->word, word, release);
	if (weft__task_notify(task, id))
		weft__enqueue(runtime, here, task); /* mutate: wake */
	weft__runtime_unref(runtime);
}

/* The granted task runs next here, or behind what is ready here. */
static inline void grant(struct weft__worker *here, struct weft__wait *wait,
			 uint32_t word, bool runs_next)
{
	struct weft__task *task = wait->task;
	uint64_t id = wait->id;

	if (weft__unlikely(!task)) {
		grant_thread(wait, word);
		return;
	}
	if (weft__unlikely(!here || wait->runtime != here->runtime)) {
		grant_with_ref(here, wait, word);
		return;
	}
	/* pairs: [waiter.grant] */
	weft__store(&wait->word, word, release);
	if (!weft__task_notify(task, id))
		return;
	if (runs_next)
		weft__push_next(here, task); /* mutate: wake */
	else
		weft__push(here, task); /* mutate: wake */
}

void weft__waiter_grant(struct weft__worker *here, struct weft__waiter *w,
			unsigned outcome)
{
	grant(here, w->wait, WEFT__WAIT_GRANTED + outcome, true);
}

void weft__waiters_grant(struct weft__worker *here, struct weft__waiter *first,
			 unsigned outcome)
{
	bool alone = first && !first->next;

	while (first) {
		struct weft__waiter *next = first->next;

		grant(here, first->wait, WEFT__WAIT_GRANTED + outcome, alone);
		first = next;
	}
}

struct weft__waiter *weft__waiters_take_all(struct weft__waiters *queue)
{
	struct weft__waiter *first = NULL, **link = &first, *w;

	while ((w = weft__waiters_take(queue))) {
		*link = w;
		link = &w->next;
	}
	*link = NULL;
	return first;
}

void weft__wake_in(struct weft__waiters *queue, struct weft__lock *lock)
{
	struct weft__waiter *all = weft__waiters_take_all(queue);

	weft__lock_drop(lock);
	weft__waiters_grant(weft__sync_worker(), all, 0); /* mutate: wake */
}

int weft__sync_charge_slow(struct weft__worker *worker)
{
	struct weft__task *task = worker->current;

	weft__count(worker, WEFT__N_READY_YIELDS, 1);
	/* Counts as a suspension: a loop of such calls meets its deadline, and
	 * a cancellation finds it. */
	weft__wait_begin(worker, task);
	worker = weft__give_way(worker);
	return weft__interrupted(worker, task);
}

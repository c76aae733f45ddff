/* SPDX-License-Identifier: MIT */
/*
 * Waiter - a task, or a thread that is no worker, in the queue of a mutex, a
 * channel or the like.  The waiter lies on the stack of the task or thread that
 * waits, so no wait allocates.
 *
 *	the waiter		    the caller that grants
 *	----------		    ----------------------
 *	lock, cannot have it,
 *	queue itself, unlock
 *	weft__waiter_wait()	    lock, weft__waiters_take(), unlock
 *	  ... suspended ...	    weft__waiter_grant()
 *	has it
 *
 * One call may wait in several queues (select): a waiter in each, and one
 * struct weft__wait for all of them, which is claimed before it is granted.
 *
 * Invariants
 *   WAIT1  The caller that takes a waiter out of its queue, under the object's
 *       lock, grants it once, and what it grants belongs to the waiter from
 *       then on.  So a wait that is interrupted either finds itself queued, and
 *       leaves with the error and nothing; or a grant is coming, and the wait
 *       continues until it has it.  Success wins, and nothing that was granted
 *       is lost.
 *   WAIT2  After the store of the grant the granting caller touches neither the
 *       waiter nor the object: the task that waited may have returned, and
 *       freed both.
 *   WAIT3  A task that waits does not return before the grant, so its runtime
 *       does not end before.
 *
 * Orderings
 *   [waiter.grant]  grant store release -> wait load acquire: what was granted,
 *       and what the holder before did with it.
 */
#ifndef WEFT_RUNTIME_SCHED_WAITER_H
#define WEFT_RUNTIME_SCHED_WAITER_H

#include "runtime/base/lock.h"
#include "runtime/sched/wait.h"

/* The word of a wait: one of these, or WEFT__WAIT_GRANTED + an outcome. */
enum {
	WEFT__WAIT_OPEN,
	WEFT__WAIT_CLAIMED, /* in one of several queues; granted soon */
	WEFT__WAIT_GRANTED,
};

/* The kind of object that is waited for; for messages. */
enum weft__on {
	WEFT__ON_UNREPORTED,
	WEFT__ON_MUTEX,
	WEFT__ON_READ_LOCK,
	WEFT__ON_WRITE_LOCK,
	WEFT__ON_SEMAPHORE,
	WEFT__ON_CONDITION,
	WEFT__ON_EVENT,
	WEFT__ON_NOTIFICATION,
	WEFT__ON_COUNT,
	WEFT__ON_BARRIER,
	WEFT__ON_ONCE,
	WEFT__ON_SEND,
	WEFT__ON_RECEIVE,
	WEFT__ON_ONESHOT,
	WEFT__ON_BROADCAST,
	WEFT__ON_WATCH,
	WEFT__ON_SELECT,
	WEFT__ON_LIMIT,
	WEFT__ON_JOB,
	WEFT__ON_DUMP,
	WEFT__ON_KINDS,
};

struct weft__wait {
	struct weft_runtime *runtime; /* NULL: a thread waits, on the word */
	struct weft__task *task;
	uint64_t id;
	weft__atomic(uint32_t) word;
	uint32_t won; /* the claimer's: `want` of what was granted */
	const void *object; /* the object that `on` describes */
	enum weft__on on;
};

struct weft__waiter {
	struct weft__waiter *next; /* under the lock; once it was taken, */
	struct weft__waiter *prev; /* the taker's to use */
	struct weft__wait *wait;
	void *item;	  /* the object's: the place of a value */
	uint32_t want;	  /* the object's: an amount, or a case */
	bool queued;	  /* under the object's lock */
	bool one_of_many; /* to be claimed */
};

struct weft__waiters {
	struct weft__waiter *head; /* the oldest */
	struct weft__waiter *tail;
};

static inline void weft__waiters_add(struct weft__waiters *queue,
				     struct weft__waiter *w)
{
	w->next = NULL;
	w->prev = queue->tail;
	*(w->prev ? &w->prev->next : &queue->head) = w;
	queue->tail = w;
	w->queued = true;
}

/* Before all others: for a waiter that had its turn, and lost it. */
static inline void weft__waiters_add_first(struct weft__waiters *queue,
					   struct weft__waiter *w)
{
	w->prev = NULL;
	w->next = queue->head;
	*(w->next ? &w->next->prev : &queue->tail) = w;
	queue->head = w;
	w->queued = true;
}

static inline void weft__waiters_remove(struct weft__waiters *queue,
					struct weft__waiter *w)
{
	*(w->prev ? &w->prev->next : &queue->head) = w->next;
	*(w->next ? &w->next->prev : &queue->tail) = w->prev;
	w->queued = false;
}

/* True: the caller, and no other, grants the wait. */
static inline bool weft__wait_claim(struct weft__wait *wait)
{
	uint32_t open = WEFT__WAIT_OPEN;

	/* relaxed: only one caller wins.  Its later writes are passed on by the
	 * grant, and by the locks of the objects. */
	return weft__cas(&wait->word, &open, (uint32_t)WEFT__WAIT_CLAIMED,
			 relaxed);
}

/* False: it has been claimed. */
static inline bool weft__wait_is_open(struct weft__wait *wait)
{
	/* relaxed: a caller that sees it claimed waits for the grant. */
	return weft__load(&wait->word, relaxed) == WEFT__WAIT_OPEN;
}

/* Takes the oldest waiter that can still be granted out of the queue; or
 * NULL. */
static inline struct weft__waiter *
weft__waiters_take(struct weft__waiters *queue)
{
	struct weft__waiter *w;

	while ((w = queue->head)) {
		weft__waiters_remove(queue, w);
		if (!w->one_of_many)
			return w;
		if (weft__wait_claim(w->wait)) { /* mutate: recheck=true */
			w->wait->won = w->want;
			return w;
		}
	}
	return NULL;
}

/* For the calling task, which runs on `worker`; NULL: for the calling
 * thread. */
static inline void weft__wait_init(struct weft__wait *wait,
				   struct weft__worker *worker)
{
	struct weft__task *task = weft__running(worker);

	*wait = (struct weft__wait){
		.runtime = task ? worker->runtime : NULL,
		.task = task,
		.id = task ? weft__running_id(task) : 0,
		.word = WEFT__WAIT_OPEN, /* published by the object's lock */
	};
}

/* Notes what the wait is for; `object` lives until the call returns. */
static inline void weft__wait_on(struct weft__wait *wait, enum weft__on on,
				 const void *object)
{
	wait->on = on;
	wait->object = object;
}

/* A waiter that waits in one queue. */
static inline void weft__waiter_init(struct weft__waiter *w,
				     struct weft__wait *wait,
				     struct weft__worker *worker, void *item,
				     uint32_t want)
{
	weft__wait_init(wait, worker);
	w->wait = wait;
	w->item = item;
	w->want = want;
	w->one_of_many = false;
}

/* Suspends the task, or blocks the thread, until the wait is granted.  Returns
 * the outcome.  A task that `heeds` interruptions may also get -ECANCELED or
 * -ETIMEDOUT, with the wait still open. */
int weft__wait(struct weft__wait *wait, bool heeds);

/* The same for a waiter in one queue.  If the wait was interrupted, the waiter
 * has left the queue. */
int weft__waiter_wait(struct weft__waiter *w, struct weft__waiters *queue,
		      struct weft__lock *lock);

/* For a wait that receives nothing but the wake: queues the caller, drops the
 * lock, and waits.  Returns 0, -ECANCELED or -ETIMEDOUT. */
int weft__wait_in(struct weft__waiters *queue, struct weft__lock *lock,
		  struct weft__worker *worker, enum weft__on kind,
		  const void *object);

/* Wakes a waiter that was taken out of a queue, after the lock was dropped; it
 * runs next here.  `here` is the calling worker, or NULL. */
void weft__waiter_grant(struct weft__worker *here, struct weft__waiter *w,
			unsigned outcome);

/* The same for any number, linked by `next`, oldest first.  If there are
 * several, each runs in its turn. */
void weft__waiters_grant(struct weft__worker *here, struct weft__waiter *first,
			 unsigned outcome);

/* Takes all waiters of a queue, for weft__waiters_grant(). */
struct weft__waiter *weft__waiters_take_all(struct weft__waiters *queue);

/* The other side of weft__wait_in(): takes all waiters of a queue, drops the
 * lock, and wakes them. */
void weft__wake_in(struct weft__waiters *queue, struct weft__lock *lock);

int weft__sync_charge_slow(struct weft__worker *worker);

/*
 * The start of a call that may wait.  *ret_worker is the caller's worker, or
 * NULL in a thread that runs no task.  Returns 0, or -ECANCELED, -ETIMEDOUT, or
 * -EPERM in a future: nothing was done.  A call that does not wait counts as a
 * ready operation.  After 128 of them in a run the task yields, before the call
 * does its work.
 */
static inline int weft__sync_enter(struct weft__worker **ret_worker)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	int error;

	*ret_worker = task ? worker : NULL;
	if (weft__unlikely(!task))
		return weft__self(worker) ? -EPERM : 0;
	error = weft__interrupted(worker, task);
	if (weft__unlikely(error < 0))
		return error;
	weft__count(worker, WEFT__N_OPS_READY, 1);
	if (weft__likely(--worker->ops_left > 0))
		return 0;
	error = weft__sync_charge_slow(worker);
	*ret_worker = weft__worker_self();
	return error;
}

/*
 * The same for calls that are as short as this preamble.  Returns the worker of
 * a task that may go on, which is charged for the call.  NULL:
 * weft__sync_enter() finds the reason.  Nothing is called, so the caller needs
 * no frame.
 */
static inline struct weft__worker *weft__sync_enter_quick(void)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);

	/* relaxed: if a flag is set, weft__sync_enter() looks again. */
	if (weft__unlikely(!task || worker->ops_left <= 1 ||
			   (weft__load(&task->state, relaxed) &
			    (WEFT__CANCELLED | WEFT__EXPIRED))))
		return NULL;
	worker->ops_left--;
	weft__count(worker, WEFT__N_OPS_READY, 1);
	return worker;
}

/* The worker of the calling task or future; NULL in a thread that runs
 * neither. */
static inline struct weft__worker *weft__sync_worker(void)
{
	struct weft__worker *worker = weft__worker_self();

	return weft__self(worker) ? worker : NULL;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Awaiting by a future what is granted: as weft__waiter_wait(), with the waiter
 * in the future's room.
 */
#include "runtime/future.h"
#include "runtime/sync/chan.h"

/* Queues it, under the lock. */
static void queue(struct weft__worker *worker, struct weft__task *task,
		  struct weft__waiters *waiters, void *item, enum weft__on on,
		  const void *object)
{
	struct weft__future_room *room = task->room;

	room->wait = (struct weft__wait){
		.runtime = worker->runtime,
		.task = task,
		.id = weft__running_id(task),
		.word = WEFT__WAIT_OPEN, /* published by the lock */
	};
	room->waiter = (struct weft__waiter){
		.wait = &room->wait,
		.item = item,
	};
	weft__wait_on(&room->wait, on, object);
	room->queue = waiters;
	weft__waiters_add(waiters, &room->waiter);
}

/* True: it was in the queue still, and nothing is granted to it any more. */
static bool leave(struct weft__task *task, struct weft__waiters *waiters,
		  struct weft__lock *lock)
{
	bool queued;

	weft__lock_take(lock);
	queued = task->room->waiter.queued;
	if (queued) /* mutate: recheck=false */
		weft__waiters_remove(waiters, &task->room->waiter);
	weft__lock_drop(lock);
	return queued;
}

/* The outcome, or why it was interrupted; or WEFT_PENDING. */
static int go_on(struct weft__worker *worker, struct weft__task *task,
		 struct weft__waiters *waiters, struct weft__lock *lock)
{
	/* pairs: [waiter.grant] */
	uint32_t word = weft__load(&task->room->wait.word, acquire);
	int error;

	weft__assert(task->room->queue == waiters, WEFT__AWAITS_ANOTHER);
	if (word >= WEFT__WAIT_GRANTED)
		return weft__await_end(worker, task,
				       (int)(word - WEFT__WAIT_GRANTED));
	error = weft__future_interrupted(worker, task);
	if (error == 0 || !leave(task, waiters, lock))
		return WEFT_PENDING;
	return weft__await_end(worker, task, error);
}

/* One of chan_send_now, chan_recv_now. */
typedef int (*chan_now_fn)(struct weft__chan *c, void *item,
			   struct weft__waiter **ret_met);

static int chan_begin(struct weft__worker *worker, struct weft__task *task,
		      struct weft__chan *c, struct weft__waiters *waiters,
		      void *item, chan_now_fn now)
{
	bool sends = waiters == &c->senders;
	struct weft__waiter *met;
	int r;

	if (!weft__future_room(task))
		return -ENOMEM;
	weft__await_begin(WEFT__AWAITS_GRANT, worker, task);
	weft__lock_take(&c->lock);
	r = now(c, item, &met);
	if (r == WEFT__CHAN_WAITS)
		queue(worker, task, waiters, item,
		      sends ? WEFT__ON_SEND : WEFT__ON_RECEIVE, c);
	weft__lock_drop(&c->lock);
	if (r == WEFT__CHAN_WAITS)
		return WEFT_PENDING;
	if (met)
		/* mutate: wake */
		weft__waiter_grant(worker, met, WEFT__CHAN_DONE);
	return weft__await_end(worker, task, r);
}

static int chan_await(struct weft__chan *c, struct weft__waiters *waiters,
		      void *item, chan_now_fn now)
{
	struct weft__worker *worker;
	struct weft__task *task;
	int r = weft__await_enter(WEFT__AWAITS_GRANT, &worker, &task);

	if (r < 0)
		return r;
	if (task->awaits == WEFT__AWAITS_NOTHING)
		return chan_begin(worker, task, c, waiters, item, now);
	r = go_on(worker, task, waiters, &c->lock);
	return r == WEFT__CHAN_CLOSED ? -EPIPE : r;
}

static int send_now(struct weft__chan *c, void *item,
		    struct weft__waiter **ret_met)
{
	return weft__chan_send_now(c, item, ret_met);
}

int weft_await_chan_send(struct weft_chan *chan, const void *item)
{
	struct weft__chan *c = weft__chan(chan);

	return chan_await(c, &c->senders, (void *)(uintptr_t)item, send_now);
}

int weft_await_chan_recv(struct weft_chan *chan, void *ret_item)
{
	struct weft__chan *c = weft__chan(chan);

	return chan_await(c, &c->receivers, ret_item, weft__chan_recv_now);
}

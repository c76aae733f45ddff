/* SPDX-License-Identifier: MIT */
#include "runtime/sync/await_grant.h"

int weft__await_room(struct weft__worker *worker, struct weft__task *task)
{
	if (!weft__future_room(worker->runtime, task))
		return -ENOMEM;
	weft__await_begin(WEFT__AWAITS_GRANT, worker, task);
	return 0;
}

struct weft__waiter *weft__await_in(struct weft__worker *worker,
				    struct weft__task *task,
				    struct weft__waiters *waiters,
				    enum weft__on on, const void *object)
{
	struct weft__future_room *room = task->room;

	room->wait = (struct weft__wait){
		.runtime = worker->runtime,
		.task = task,
		.id = weft__running_id(task),
		.word = WEFT__WAIT_OPEN, /* published by the lock */
	};
	room->waiter = (struct weft__waiter){ .wait = &room->wait };
	weft__wait_on(&room->wait, on, object);
	weft__waiters_add(waiters, &room->waiter);
	return &room->waiter;
}

/* True: it was still in the queue, and no grant can come any more. */
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

int weft__await_granted(struct weft__worker *worker, struct weft__task *task,
			struct weft__waiters *waiters, struct weft__lock *lock)
{
	/* pairs: [waiter.grant] */
	uint32_t word = weft__load(&task->room->wait.word, acquire);
	int error;

	if (word >= WEFT__WAIT_GRANTED)
		return weft__await_end(worker, task,
				       (int)(word - WEFT__WAIT_GRANTED));
	error = weft__future_interrupted(worker, task);
	if (error == 0 || !leave(task, waiters, lock))
		return WEFT_PENDING;
	return weft__await_end(worker, task, error);
}

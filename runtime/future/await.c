/* SPDX-License-Identifier: MIT */
/*
 * Await - the part that all waits of futures share: deadlines, interruption,
 * turns.
 *
 * A future has no stack to wait on: it returns WEFT_PENDING and is polled
 * again.  task->awaits says what it awaits, so that the next poll goes on with
 * the same wait; another await before that has ended is an error that aborts.
 * The alarm of the future's room makes it be polled at its deadline.  A future
 * that has used up its budget of ready operations is polled again in its next
 * turn, and begins its wait then (WEFT__AWAITS_LATER).
 */
#include "runtime/future/future.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/sched/runtime.h"

_Static_assert(offsetof(struct weft__task, sleep) % _Alignof(struct weft__alarm)
		       == 0,
	       "an alarm fits into the record");

/* ---- The future's own deadline ------------------------------------------- */

int weft_future_within(weft_nsec length_ns)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__polled(worker);
	uint64_t deadline_ns = weft__deadline_after(length_ns);

	if (!task || task->awaits == WEFT__AWAITS_END)
		return -EPERM;
	weft__assert(task->awaits == WEFT__AWAITS_NOTHING,
		     "a future set a deadline while it awaits something");
	if (!weft__future_room(worker->runtime, task))
		return -ENOMEM;
	task->room->own_ns = deadline_ns;
	task->room->reported_ns = 0;
	weft__task_mark(task, WEFT__TASK_WITHIN);
	return 0;
}

/* ---- Waiting for something of its own ------------------------------------ */

static void link_late(struct weft__task *task)
{
	weft__scope_link(task);
	/* relaxed: the task reads its own word. */
	if (weft__load(&task->state, relaxed) & WEFT__CANCELLED)
		(void)weft__await_turn(task);
}

static void room_arm(struct weft__worker *worker, struct weft__task *task,
		     uint64_t deadline_ns)
{
	struct weft__alarm *alarm = &task->room->alarm;

	alarm->kind = WEFT__ALARM_WAKE;
	alarm->task = weft__running_id(task);
	worker->ops->arm(worker, alarm, deadline_ns); /* mutate: wake */
}

void weft__future_disarm(struct weft__worker *worker, struct weft__task *task)
{
	/* mutate: recheck=false */
	if (task->room && task->room->alarm.armed)
		(void)worker->ops->disarm(worker->runtime, &task->room->alarm);
}

/* The next of its deadlines that was not reported to it yet. */
static uint64_t deadline_unreported(const struct weft__task *task)
{
	const struct weft__future_room *room = task->room;
	uint64_t next_ns = WEFT_NEVER;

	if (room && room->own_ns > room->reported_ns)
		next_ns = room->own_ns;
	if (room && room->inherited_ns > room->reported_ns &&
	    room->inherited_ns < next_ns)
		next_ns = room->inherited_ns;
	return next_ns;
}

/* Makes the future be polled at its deadline, or once more if that has
 * passed. */
static void keep_deadline(struct weft__worker *worker, struct weft__task *task)
{
	uint64_t deadline_ns = deadline_unreported(task);

	if (deadline_ns == WEFT_NEVER)
		return;
	if (worker->ops->now(worker->runtime) < deadline_ns) {
		room_arm(worker, task, deadline_ns);
		return;
	}
	task->room->reported_ns = deadline_ns;
	(void)weft__await_turn(task);
}

void weft__future_wait(struct weft__worker *worker, struct weft__task *task)
{
	if (!weft__task_is(task, WEFT__TASK_LINKED))
		link_late(task);
	if (task->awaits == WEFT__AWAITS_NOTHING)
		keep_deadline(worker, task);
}

int weft_future_interrupted(void)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__polled(worker);

	if (!task)
		return -EPERM;
	if (!weft__task_is(task, WEFT__TASK_LINKED))
		weft__scope_link(task);
	return weft__future_interrupted(worker, task);
}

/* ---- Awaiting ------------------------------------------------------------ */

int weft__future_interrupted(struct weft__worker *worker,
			     struct weft__task *task)
{
	uint64_t now_ns;

	/* pairs: [task.wake] */
	if (weft__load(&task->state, acquire) & WEFT__CANCELLED)
		return -ECANCELED;
	if (weft__likely(!weft__task_is(task, WEFT__TASK_WITHIN)))
		return 0;
	now_ns = worker->ops->now(worker->runtime);
	if (now_ns >= task->room->inherited_ns)
		return -ECANCELED;
	return now_ns >= task->room->own_ns ? -ETIMEDOUT : 0;
}

/* Checks that the await is the same as before.  The words keep `on` and `with`
 * until the wait has begun; for a grant, until that comes, as nothing else uses
 * them then. */
static void assert_same(const struct weft__task *task, const void *on,
			uint64_t with)
{
	weft__assert(task->await_words[0] == (uintptr_t)on &&
			     task->await_words[1] == with,
		     WEFT__AWAITS_ANOTHER);
}

/* The future has done enough for this turn; it begins the wait in the next. */
static int put_off(struct weft__task *task, enum weft__awaits what)
{
	task->awaits = WEFT__AWAITS_LATER;
	task->await_call = what;
	return weft__await_turn(task);
}

static void begin_now(struct weft__task *task, enum weft__awaits what,
		      const void *on, uint64_t with)
{
	weft__assert(task->await_call == (uint64_t)what, WEFT__AWAITS_ANOTHER);
	assert_same(task, on, with);
	task->await_call = 0;
	task->awaits = WEFT__AWAITS_NOTHING;
}

int weft__await_enter(enum weft__awaits what, const void *on, uint64_t with,
		      struct weft__worker **ret_worker,
		      struct weft__task **ret_task)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__polled(worker);
	int error;

	if (!task)
		return -EPERM;
	*ret_worker = worker;
	*ret_task = task;
	if (task->awaits == what) {
		if (what == WEFT__AWAITS_GRANT)
			assert_same(task, on, with);
		return 0;
	}
	if (weft__unlikely(task->awaits == WEFT__AWAITS_END))
		return -EPERM;
	if (weft__unlikely(task->awaits == WEFT__AWAITS_LATER))
		begin_now(task, what, on, with);
	weft__assert(task->awaits == WEFT__AWAITS_NOTHING,
		     WEFT__AWAITS_ANOTHER);
	if (!weft__task_is(task, WEFT__TASK_LINKED))
		weft__scope_link(task);
	error = weft__future_interrupted(worker, task);
	if (weft__unlikely(error < 0))
		return error;
	task->await_words[0] = (uintptr_t)on;
	task->await_words[1] = with;
	weft__count(worker, WEFT__N_OPS_READY, 1);
	if (weft__likely(--worker->ops_left > 0))
		return 0;
	weft__count(worker, WEFT__N_READY_YIELDS, 1);
	return put_off(task, what);
}

void weft__await_begin(enum weft__awaits what, struct weft__worker *worker,
		       struct weft__task *task)
{
	uint64_t deadline_ns = weft__future_deadline(task);

	task->awaits = (uint8_t)what;
	if (weft__unlikely(deadline_ns != WEFT_NEVER))
		room_arm(worker, task, deadline_ns);
}

int weft__await_end(struct weft__worker *worker, struct weft__task *task, int r)
{
	weft__future_disarm(worker, task);
	task->awaits = WEFT__AWAITS_NOTHING;
	return r;
}

int weft__await_turn(struct weft__task *task)
{
	/* As if the future was woken.  relaxed: this worker looks next. */
	weft__or(&task->state, WEFT__NOTIFIED, relaxed); /* mutate: wake */
	return WEFT_PENDING;
}

int weft__await_pause(struct weft__worker *worker, struct weft__task *task,
		      uint64_t length_ns)
{
	uint64_t now_ns = worker->ops->now(worker->runtime);
	uint64_t until_ns = now_ns + length_ns;
	uint64_t deadline_ns = weft__future_deadline(task);

	if (!weft__future_room(worker->runtime, task))
		return weft__await_turn(task);
	if (deadline_ns > now_ns && deadline_ns < until_ns)
		until_ns = deadline_ns;
	weft__future_disarm(worker, task);
	room_arm(worker, task, until_ns);
	return WEFT_PENDING;
}

int weft_await_yield(void)
{
	struct weft__worker *worker;
	struct weft__task *task;
	int r = weft__await_enter(WEFT__AWAITS_TURN, NULL, 0, &worker, &task);

	if (r < 0)
		return r;
	if (task->awaits == WEFT__AWAITS_NOTHING) {
		task->awaits = WEFT__AWAITS_TURN;
		return weft__await_turn(task);
	}
	task->awaits = WEFT__AWAITS_NOTHING;
	return weft__future_interrupted(worker, task);
}

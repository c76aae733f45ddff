/* SPDX-License-Identifier: MIT */
/*
 * Waiting - the steps of every call that suspends.
 *
 *	worker = weft__worker_self();
 *	task = weft__running(worker);		NULL: not in a task
 *	error = weft__interrupted(worker, task);	refused from the start?
 *	... make it known that the task waits ...
 *	weft__deadline_arm(worker, task);
 *	while (!done) {
 *		worker = weft__suspend(worker, reason);
 *		... weft__interrupted() again: give up the wait ...
 *	}
 */
#ifndef WEFT_RUNTIME_SCHED_WAIT_H
#define WEFT_RUNTIME_SCHED_WAIT_H

#include <errno.h>

#include "runtime/sched/switch.h"
#include "runtime/sched/upcalls.h"

static inline struct weft__task *weft__running(struct weft__worker *worker)
{
	return worker ? worker->current : NULL;
}

/* The task that is running, or the future that is polled: for calls that never
 * wait. */
static inline struct weft__task *weft__self(struct weft__worker *worker)
{
	if (!worker)
		return NULL;
	return worker->current ? worker->current : worker->polled;
}

/* The id of the task that is running. */
static inline uint64_t weft__running_id(struct weft__task *task)
{
	/* relaxed: the generation does not change while it runs. */
	return weft__task_id(task, weft__load(&task->state, relaxed));
}

/* 0, or the error with which the running task's waits are to be given up:
 * -ECANCELED, or -ETIMEDOUT when the innermost deadline block has expired. */
static inline int weft__interrupted(struct weft__worker *worker,
				    struct weft__task *task)
{
	/* pairs: [task.wake] */
	uint64_t state = weft__load(&task->state, acquire);

	if (weft__likely(!(state & (WEFT__CANCELLED | WEFT__EXPIRED))))
		return 0;
	return weft__interrupted_slow(worker, task);
}

/* Called before a suspension that obeys deadlines: arms the innermost block's
 * alarm, once for each block. */
static inline void weft__deadline_arm(struct weft__worker *worker,
				      struct weft__task *task)
{
	if (weft__unlikely(weft__task_is(task, WEFT__TASK_WITHIN)))
		weft__deadline_arm_slow(worker, task);
}

static inline void weft__wait_begin(struct weft__worker *worker,
				    struct weft__task *task)
{
	if (weft__likely(weft__task_flags(task, WEFT__TASK_LINKED |
							WEFT__TASK_WITHIN) ==
			 WEFT__TASK_LINKED))
		return;
	if (!weft__task_is(task, WEFT__TASK_LINKED))
		weft__scope_link(task);
	weft__deadline_arm(worker, task);
}

/* Takes `ops` from a task's budget of ready operations, but leaves one for
 * weft__charge_ready(). */
static inline void weft__charge_ops(struct weft__worker *worker, size_t ops)
{
	if (worker->ops_left <= 1)
		return;
	if (ops < (size_t)worker->ops_left)
		worker->ops_left -= (int32_t)ops;
	else
		worker->ops_left = 1;
}

/* Counts an operation that was done without waiting.  After 128 of those in a
 * run the task yields.  Returns the worker that the task runs on. */
static inline struct weft__worker *
weft__charge_ready(struct weft__worker *worker)
{
	weft__count(worker, WEFT__N_OPS_READY, 1);
	if (weft__likely(--worker->ops_left > 0))
		return worker;
	weft__count(worker, WEFT__N_READY_YIELDS, 1);
	return weft__give_way(worker);
}

/* The same at the end of a call that may have been ready.  The task is perhaps
 * about to yield; that counts as a suspension, so that a loop of ready calls
 * meets its deadline. */
static inline void weft__charge_call(struct weft__worker *worker)
{
	if (weft__unlikely(worker->ops_left <= 1))
		weft__wait_begin(worker, worker->current);
	weft__charge_ready(worker);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Future - one poll of a future, and wakes of futures from anywhere.  The
 * header has the model, FUT1 and FUT2; await.c has what their waits share.
 */
#include "runtime/future/future.h"

#include <errno.h>

#include "runtime/sched/runtime_ref.h"
#include "runtime/task/task_main.h"

static void begin(struct weft__worker *worker, struct weft__task *task)
{
	bool on_heap = weft__task_is(task, WEFT__TASK_ARG_HEAP);

	task->awaits = WEFT__AWAITS_NOTHING;
	task->since_ns = worker->tick.clock_ns;
	task->state_at = on_heap ? task->arg_heap : task->state_inline;
}

/* The wait reason, for threads that look at the future while it is parked. */
static uint64_t reason_of(struct weft__task *task)
{
	switch (task->awaits) {
	case WEFT__AWAITS_NOTHING:
	case WEFT__AWAITS_LATER:
	case WEFT__AWAITS_TURN:
		return WEFT__REASON_UNREPORTED;
	case WEFT__AWAITS_TIME:
		return weft__reason(WEFT__REASON_TIME,
				    &task->sleep[WEFT__SLEEP_UNTIL]);
	case WEFT__AWAITS_GRANT:
		return weft__reason(WEFT__REASON_WAIT, &task->room->wait);
	default:
		return task->await_reason;
	}
}

void weft__future_poll(struct weft__worker *worker, struct weft__task *task)
{
	int64_t result;

	if (task->awaits == WEFT__AWAITS_BEGIN)
		begin(worker, task);
	else if (weft__unlikely(task->awaits == WEFT__AWAITS_NOTHING))
		weft__future_disarm(worker, task);
	weft__count(worker, WEFT__N_POLLS, 1);
	worker->tick.ran = true;
	worker->ops_left = WEFT__OPS_BUDGET;
	worker->polled_from = __builtin_frame_address(0);
	worker->polled = task;
	result = task->fn(task->state_at);
	weft__assert(weft__worker_self() == worker,
		     "a child of fork() returned from its task: end it by "
		     "_exit()");
	if (weft__likely(result == WEFT_PENDING)) {
		worker->polled = NULL;
		if (weft__unlikely(task->awaits == WEFT__AWAITS_NOTHING ||
				   !weft__task_is(task, WEFT__TASK_LINKED)))
			weft__future_wait(worker, task);
		task->reason = reason_of(task);
		if (!weft__task_park(task)) /* mutate: recheck=true */
			weft__push(worker, task); /* mutate: wake */
		return;
	}
	weft__assert(task->awaits == WEFT__AWAITS_NOTHING,
		     "a future ended before what it awaits has come");
	task->awaits = WEFT__AWAITS_END;
	weft__future_end(worker, task, result);
}

/* The future may be the last task of another runtime, which ends after that
 * task has gone on: so a reference keeps the runtime. */
static void future_notify(struct weft_runtime *runtime,
			  struct weft__worker *here, struct weft__task *task,
			  uint64_t id)
{
	bool visits = !here || here->runtime != runtime;

	if (visits)
		weft__runtime_ref(runtime);
	if (weft__task_notify(task, id))
		weft__enqueue(runtime, here, task); /* mutate: wake */
	if (visits)
		weft__runtime_unref(runtime);
}

int weft_future_wake(struct weft_runtime *runtime, struct weft_task future)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task;
	uint64_t state;

	if (!runtime && weft__self(worker))
		runtime = worker->runtime;
	if (!runtime)
		return -EINVAL;
	task = weft__task_living(runtime, future.id, &state);
	if (!task)
		return -ESRCH;
	if (!(state & WEFT__FUTURE))
		return -EINVAL;
	future_notify(runtime, worker, task, future.id);
	return 0;
}

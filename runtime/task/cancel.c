/* SPDX-License-Identifier: MIT */
/*
 * Cancel - asks tasks to end: from tasks of their runtime, and from other
 * threads.
 */
#include <errno.h>

#include "runtime/sched/runtime_ref.h"
#include "runtime/sched/task_pool.h"
#include "runtime/sched/wait.h"

static int task_cancel(struct weft_runtime *runtime, struct weft__worker *here,
		       struct weft_task handle)
{
	uint64_t state;
	struct weft__task *task =
		weft__task_living(runtime, handle.id, &state);

	if (!task)
		return -ESRCH;
	/* relaxed: the handle comes from the first task, or is of another. */
	if (weft__unlikely(handle.id == weft__load(&runtime->main_id, relaxed)))
		weft__runtime_ends(runtime, true);
	if (weft__task_interrupt(task, handle.id, WEFT__CANCELLED))
		weft__enqueue(runtime, here, task);
	return 0;
}

int weft_cancel(struct weft_task handle)
{
	struct weft__worker *worker = weft__worker_self();

	return worker ? task_cancel(worker->runtime, worker, handle) : -EPERM;
}

int weft_cancel_in(struct weft_runtime *runtime, struct weft_task handle)
{
	int error;

	if (!runtime)
		return -EINVAL;
	weft__runtime_ref(runtime);
	error = task_cancel(runtime, weft__worker_self(), handle);
	weft__runtime_unref(runtime);
	return error;
}

void weft_cancel_all(struct weft_runtime *runtime)
{
	/* Such as that of a thread that runs no task. */
	if (!runtime)
		return;
	/* The cancelled tasks may end, and the runtime with them. */
	weft__runtime_ref(runtime);
	weft_scope_cancel(&runtime->root);
	weft__runtime_unref(runtime);
}

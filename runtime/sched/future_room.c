/* SPDX-License-Identifier: MIT */
#include "runtime/sched/future_room.h"

#include <errno.h>

#include "runtime/base/memory.h"
#include "runtime/sched/runtime.h"

struct weft__future_room *weft__future_room(struct weft_runtime *runtime,
					    struct weft__task *task)
{
	if (task->room)
		return task->room;
	task->room = weft__memory_zeroed(runtime->memory, sizeof(*task->room));
	if (task->room)
		task->room->own_ns = task->room->inherited_ns = WEFT_NEVER;
	return task->room;
}

int weft__future_inherit(struct weft_runtime *runtime, struct weft__task *task,
			 uint64_t deadline_ns)
{
	if (deadline_ns == WEFT_NEVER)
		return 0;
	if (!weft__future_room(runtime, task))
		return -ENOMEM;
	task->room->inherited_ns = deadline_ns;
	weft__task_mark(task, WEFT__TASK_WITHIN);
	return 0;
}

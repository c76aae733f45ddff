/* SPDX-License-Identifier: MIT */
/*
 * Task pool - the records of tasks: found by a handle, taken for a task that
 * begins, given back.
 */
#ifndef WEFT_RUNTIME_SCHED_TASK_POOL_H
#define WEFT_RUNTIME_SCHED_TASK_POOL_H

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

/* weft__task_at() for calls that do little else. */
static inline struct weft__task *weft__record_at(struct weft_runtime *runtime,
						 uint64_t id)
{
	struct weft__task_slabs *slabs = &runtime->tasks;
	uint32_t index = (uint32_t)id;
	struct weft__task *chunk;

	/* pairs: [task.chunk] */
	if (index >= weft__load(&slabs->used, acquire))
		return NULL;
	/* relaxed: published by `used`. */
	chunk = weft__load(&slabs->chunks[index >> WEFT__TASK_CHUNK_BITS],
			   relaxed);
	return &chunk[index & (WEFT__TASK_CHUNK - 1)];
}

/* The -errno that is in the place of a record; 0: it is a record. */
static inline int weft__task_error(const struct weft__task *task)
{
	return (intptr_t)task < 0 ? (int)(intptr_t)task : 0;
}

/* Takes a blank record: no joiner, scopes, block, links.  `worker` is the
 * calling worker, or NULL. weft__task_error() finds the error in the result:
 * the limit of tasks, or no memory. */
static inline struct weft__task *weft__task_new(struct weft_runtime *runtime,
						struct weft__worker *worker)
{
	struct weft__task *task;

	if (weft__unlikely(!worker || !worker->caches.tasks))
		return weft__task_fetch(runtime, worker);
	task = worker->caches.tasks;
	worker->caches.tasks = task->next;
	worker->caches.tasks_count--;
	weft__task_prefetch(task->ahead);
	return task;
}

static inline void weft__task_free(struct weft_runtime *runtime,
				   struct weft__worker *worker,
				   struct weft__task *task)
{
	/* relaxed: only the caller may change the generation. */
	uint64_t state = weft__load(&task->state, relaxed);

	weft__check(!task->scopes && !task->within && !task->sibling_link,
		    "a task ended with a scope, a deadline block or a link");
	/* A stale handle that meets the new generation does nothing.
	 * pairs: [task.free] */
	weft__store(&task->state, weft__state_next(state), release);
	if (weft__unlikely(!worker || worker->caches.keep_no_tasks)) {
		weft__task_give_back(runtime, task);
		return;
	}
	task->next = worker->caches.tasks;
	worker->caches.tasks = task;
	if (weft__unlikely(++worker->caches.tasks_count > WEFT__FREE_TASKS_MAX))
		weft__tasks_give_back(worker);
}

#endif

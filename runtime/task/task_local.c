/* SPDX-License-Identifier: MIT */
/*
 * Task-locals - what a task has of its own beyond its stack: values with keys,
 * and deferred calls for its end.  One list, newest first.
 *
 * Few tasks have any, so a record has only a flag for it (WEFT__TASK_LOCALS).
 * The list begins in the header of the stack, in the word that links free
 * stacks.
 *
 * An entry is allocated on the heap: a call deferred to the end of the task
 * outlives the frames of its functions, so the entry cannot lie in them.
 */
#include <errno.h>

#include <weft/task_local.h>
#include <weft/task.h>

#include "runtime/base/memory.h"
#include "runtime/sched/runtime.h"
#include "runtime/sched/wait.h"
#include "runtime/task/task_local.h"

struct weft__task_local {
	struct weft__task_local *next;	  /* added before this one */
	const struct weft_task_local_key *key; /* NULL: deferred */
	weft_defer_fn fn;		  /* the deferred call */
	void *value;
};

static struct weft__task *running(void)
{
	return weft__running(weft__worker_self());
}

static const struct weft_allocator *memory_here(void)
{
	return weft__worker_self()->runtime->memory;
}

static struct weft__task_local *local_first(struct weft__task *task)
{
	return weft__task_is(task, WEFT__TASK_LOCALS) ? task->stack->locals :
							NULL;
}

static struct weft__task_local *local_find(struct weft__task *task,
				      const struct weft_task_local_key *key)
{
	struct weft__task_local *local = local_first(task);

	while (local && local->key != key)
		local = local->next;
	return local;
}

static int local_add(struct weft__task *task,
		     const struct weft_task_local_key *key, weft_defer_fn fn,
		     void *value)
{
	struct weft__task_local *local =
		weft__memory_new(memory_here(), sizeof(*local));

	if (!local)
		return -ENOMEM;
	*local = (struct weft__task_local){
		.next = local_first(task),
		.key = key,
		.fn = fn,
		.value = value,
	};
	task->stack->locals = local;
	weft__task_mark(task, WEFT__TASK_LOCALS);
	return 0;
}

int weft_task_local_set(const struct weft_task_local_key *key, void *value)
{
	struct weft__task *task = running();
	struct weft__task_local *local;

	if (!task)
		return -EPERM;
	if (!key)
		return -EINVAL;
	local = local_find(task, key);
	if (!local)
		return local_add(task, key, NULL, value);
	local->value = value;
	return 0;
}

void *weft_task_local_get(const struct weft_task_local_key *key)
{
	struct weft__task *task = running();
	struct weft__task_local *local =
		task && key ? local_find(task, key) : NULL;

	return local ? local->value : NULL;
}

int weft_defer(weft_defer_fn fn, void *arg)
{
	struct weft__task *task = running();

	if (!task)
		return -EPERM;
	return fn ? local_add(task, NULL, fn, arg) : -EINVAL;
}

void weft__deferred_drop(weft_defer_fn fn, const void *arg)
{
	struct weft__task *task = running();
	struct weft__task_local *local, **link = &task->stack->locals;

	if (!local_first(task))
		return;
	while ((local = *link) && (local->fn != fn || local->value != arg))
		link = &local->next;
	if (!local)
		return;
	*link = local->next;
	weft__memory_free(memory_here(), local, sizeof(*local));
}

/* Removes an entry, and runs its call or destructor, which may add entries. */
static void local_end(struct weft__task *task)
{
	struct weft__task_local local = *task->stack->locals;

	weft__memory_free(memory_here(), task->stack->locals,
			  sizeof(*task->stack->locals));
	task->stack->locals = local.next;
	if (!local.key)
		local.fn(local.value);
	else if (local.key->destroy && local.value)
		local.key->destroy(local.value);
}

void weft__task_locals_end(struct weft__task *task)
{
	WEFT_SHIELD
		while (task->stack->locals)
			local_end(task);
}

/* ---- Blocks -------------------------------------------------------------- */

void weft_deferred_run(struct weft_deferred *deferred)
{
	weft_defer_fn fn = deferred->fn;

	deferred->fn = NULL;
	if (!fn)
		return;
	if (!running()) {
		fn(deferred->arg);
		return;
	}
	WEFT_SHIELD
		fn(deferred->arg);
}

void weft_deferred_cancel(struct weft_deferred *deferred)
{
	deferred->fn = NULL;
}

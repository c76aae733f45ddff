/* SPDX-License-Identifier: MIT */
/*
 * Go - starting tasks, from tasks and from other threads; and what a task can
 * ask about itself.
 */
#include <errno.h>
#include <string.h>

#include <weft/future.h>

#include "runtime/base/memory.h"
#include "runtime/sched/future_room.h"
#include "runtime/sched/task_pool.h"
#include "runtime/sched/wait.h"
#include "runtime/task/go.h"
#include "runtime/task/scope.h"

static const struct weft_task_opts no_opts = WEFT_TASK_OPTS_INIT;

void weft__task_arg_free(struct weft_runtime *runtime,
			 struct weft__task *task)
{
	weft__memory_free(runtime->memory, task->arg_heap,
			  task->arg_heap_bytes);
}

static inline bool args_wrong(weft_fn fn, const void *arg, size_t arg_bytes)
{
	return !fn || arg_bytes > WEFT_ARG_BYTES_MAX || (arg_bytes && !arg);
}

bool weft__go_wrong(weft_fn fn, const void *arg, size_t arg_bytes,
		    const struct weft_task_opts *opts)
{
	return args_wrong(fn, arg, arg_bytes) || opts->size != sizeof(*opts) ||
	       (opts->flags & ~(WEFT_PINNED | WEFT_FUTURE)) ||
	       opts->flags == (WEFT_PINNED | WEFT_FUTURE) || opts->reserved ||
	       ((opts->flags & WEFT_FUTURE) && opts->stack_bytes) ||
	       (opts->stack_bytes && !weft__stack_class(opts->stack_bytes));
}

static inline int go_arg(struct weft_runtime *runtime, struct weft__task *task,
			 const void *arg, size_t arg_bytes)
{
	void *copy = task->arg;

	if (weft__unlikely(arg_bytes > WEFT__ARG_INLINE_BYTES ||
			   (arg_bytes > WEFT__STATE_INLINE_BYTES &&
			    weft__task_is_future(task)))) {
		copy = weft__memory_new(runtime->memory, arg_bytes);
		if (!copy)
			return -ENOMEM;
		task->arg_heap = copy;
		task->arg_heap_bytes = arg_bytes;
		weft__task_mark(task, WEFT__TASK_ARG_HEAP);
	}
	if (arg_bytes)
		memcpy(copy, arg, arg_bytes);
	return 0;
}

static inline void go_options(struct weft_runtime *runtime,
			      struct weft__task *task,
			      const struct weft_task_opts *opts)
{
	task->name = opts->name;
	if (opts->stack_bytes)
		task->stack_class = weft__stack_class(opts->stack_bytes);
	else
		task->stack_class = runtime->stack_class;
	if (opts->flags & WEFT_PINNED)
		weft__task_mark(task, WEFT__TASK_PIN);
	if (opts->flags & WEFT_FUTURE)
		weft__future_init(task);
	if (opts->ret_task)
		weft__task_mark(task, WEFT__TASK_HANDLE);
}

/* A task that is ready to be queued, blank except for its work. */
static inline struct weft__task *go_new(struct weft_runtime *runtime,
					struct weft__worker *here,
					struct weft_scope *scope, weft_fn fn,
					unsigned flags)
{
	struct weft__task *task = weft__task_new(runtime, here);
	uint64_t generation;

	if (weft__unlikely(weft__task_error(task)))
		return task;
	/* relaxed: no other thread knows the task. */
	generation = weft__load(&task->state, relaxed) &
		     ~(WEFT__GENERATION - 1);
	/* relaxed: published by the queue that it enters. */
	weft__store(&task->state, generation, relaxed);
	task->fn = fn;
	task->scope = scope;
	task->pin = 0;
	/* relaxed: published by the queue that it enters. */
	weft__store(&task->flags, (uint8_t)flags, relaxed);
	return task;
}

/* The task inherits the deadline of the task that starts it. */
static __attribute__((noinline)) int
go_deadline(struct weft_runtime *runtime, struct weft__task *task)
{
	if (weft__task_is_future(task))
		return weft__future_inherit(runtime, task, weft_deadline());
	task->deadline_ns = weft_deadline();
	return 0;
}

/* Puts the handle on the owner's list, and into *ret_task. */
static void go_handle(struct weft__scope *s, struct weft__task *task,
		      struct weft_task *ret_task)
{
	task->handle_next = s->handles;
	task->handle_link = &s->handles;
	if (s->handles)
		s->handles->handle_link = &task->handle_next;
	s->handles = task;
	ret_task->id = weft__running_id(task);
}

static void go_count(struct weft__scope *s, struct weft__task *starter)
{
	if (weft__likely(s->owner == starter))
		s->started++;
	else
		/* relaxed: the starter is itself counted, or holds the scope
		 * open; so it cannot end meanwhile. */
		weft__add(&s->pending, (int64_t)1, relaxed);
}

static __attribute__((noinline)) int go_failed(struct weft__scope *s,
					       unsigned flags, int error)
{
	if (flags & WEFT__TASK_REPORTED)
		weft__scope_dismiss(s);
	return error;
}

static inline int go(struct weft_scope *scope, weft_fn fn, const void *arg,
		     size_t arg_bytes, const struct weft_task_opts *opts)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *self = weft__self(worker);
	struct weft__scope *s = weft__scope(scope);
	struct weft__task *task;
	unsigned flags = 0;
	int error;

	if (weft__unlikely(!self))
		return -EPERM;
	weft__assert(weft__scope_is_open(s),
		     "a task was started in a scope that is not open");
	if (weft__unlikely(opts->ret_task && s->owner != self))
		return -EPERM;
	/* A cancellation that comes now reaches the task when it first
	 * waits. */
	if (weft__unlikely(weft__scope_is(s, ~0u))) {
		error = weft__scope_admit(s);
		if (error < 0)
			return error;
		flags = WEFT__TASK_REPORTED;
		worker = weft__worker_self();
	}
	task = go_new(worker->runtime, worker, scope, fn, flags);
	error = weft__task_error(task);
	if (weft__unlikely(error < 0))
		return go_failed(s, flags, error);
	go_options(worker->runtime, task, opts);
	task->deadline_ns = WEFT_NEVER;
	if (weft__unlikely(weft__task_is(self, WEFT__TASK_WITHIN)))
		error = go_deadline(worker->runtime, task);
	if (weft__likely(error == 0))
		error = go_arg(worker->runtime, task, arg, arg_bytes);
	if (weft__unlikely(error < 0)) {
		if (weft__task_is_future(task))
			weft__memory_free(worker->runtime->memory, task->room,
					  sizeof(*task->room));
		weft__task_free(worker->runtime, worker, task);
		return go_failed(s, flags, error);
	}
	if (opts->ret_task)
		go_handle(s, task, opts->ret_task);
	go_count(s, self);
	weft__count(worker, WEFT__N_SPAWNED, 1);
	weft__push_next(worker, task);
	return 0;
}

int weft_go(struct weft_scope *scope, weft_fn fn, const void *arg,
	    size_t arg_bytes)
{
	if (weft__unlikely(!scope || args_wrong(fn, arg, arg_bytes)))
		return -EINVAL;
	return go(scope, fn, arg, arg_bytes, &no_opts);
}

int weft_go_future(struct weft_scope *scope, weft_fn poll, const void *state,
		   size_t state_bytes)
{
	static const struct weft_task_opts opts = {
		.size = sizeof(opts),
		.flags = WEFT_FUTURE,
	};

	if (weft__unlikely(!scope || args_wrong(poll, state, state_bytes)))
		return -EINVAL;
	return go(scope, poll, state, state_bytes, &opts);
}

int weft_go_opts(struct weft_scope *scope, weft_fn fn, const void *arg,
		 size_t arg_bytes, const struct weft_task_opts *opts)
{
	if (!opts)
		return weft_go(scope, fn, arg, arg_bytes);
	if (weft__unlikely(!scope ||
			   weft__go_wrong(fn, arg, arg_bytes, opts)))
		return -EINVAL;
	return go(scope, fn, arg, arg_bytes, opts);
}

int weft__root_go(struct weft_runtime *runtime, struct weft__worker *here,
		  weft_fn fn, const void *arg, size_t arg_bytes,
		  const struct weft_task_opts *opts, bool raw_arg)
{
	struct weft__scope *s = weft__scope(&runtime->root);
	struct weft__task *task;
	int error;

	if (here && here->runtime != runtime)
		here = NULL;
	task = go_new(runtime, here, &runtime->root, fn, 0);
	error = weft__task_error(task);
	if (error < 0)
		return error;
	go_options(runtime, task, opts);
	task->deadline_ns = WEFT_NEVER;
	if (raw_arg) {
		task->arg_heap = (void *)(uintptr_t)arg;
		weft__task_mark(task, WEFT__TASK_RAW_ARG);
	} else {
		error = go_arg(runtime, task, arg, arg_bytes);
		if (error < 0) {
			weft__task_free(runtime, here, task);
			return error;
		}
	}
	if (opts->ret_task)
		opts->ret_task->id = weft__running_id(task);
	/* relaxed: the caller keeps the runtime from ending meanwhile. */
	weft__add(&s->pending, (int64_t)1, relaxed);
	/* relaxed: a counter. */
	weft__add(&runtime->roots_begun, (uint64_t)1, relaxed);
	weft__enqueue(runtime, here, task);
	return 0;
}

int weft_yield(void)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *self = weft__running(worker);

	if (weft__unlikely(!self))
		return -EPERM;
	/* Otherwise a task that only yields would not notice its deadline. */
	weft__deadline_arm(worker, self);
	if (!weft__turn_at_once(worker)) {
		/* The task in the hand-off slot, too, goes before the one that
		 * yields, and must not fall behind it when the slot's cap is
		 * reached.  (weft__give_way(), inlined: nothing else is
		 * done.) */
		weft__lifo_queue(worker);
		worker = weft__switch_to(worker, weft__pick(worker),
					 WEFT__LEFT_YIELD);
	}
	/* A cancellation need not find a task that only yields: the task looks
	 * here, and links itself, which sets its CANCELLED. */
	if (weft__unlikely(weft__scope_is(weft__scope(self->scope),
					  WEFT__SCOPE_CANCELLED)) &&
	    !weft__task_is(self, WEFT__TASK_LINKED))
		weft__scope_link(self);
	/* Its alarm may not have fired yet. */
	if (weft__unlikely(weft__task_is(self, WEFT__TASK_WITHIN)))
		weft__within_look(worker, self);
	return weft__interrupted(worker, self);
}

struct weft_task weft_self(void)
{
	struct weft__task *self = weft__self(weft__worker_self());

	return (struct weft_task){ self ? weft__running_id(self) : 0 };
}

const char *weft_task_name(void)
{
	struct weft__task *self = weft__self(weft__worker_self());

	return self ? self->name : NULL;
}

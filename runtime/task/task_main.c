/* SPDX-License-Identifier: MIT */
/*
 * Task main - the bottom frame of every task: it calls the task's function, and
 * ends the task when that returns.
 */
#include "runtime/task/task_main.h"

#include "runtime/base/memory.h"
#include "runtime/sched/future_room.h"
#include "runtime/sched/task_pool.h"
#include "runtime/sched/wait.h"
#include "runtime/task/scope.h"
#include "runtime/task/task_local.h"
#include "runtime/task/within.h"

_Static_assert((int)WEFT__AWAITS_MANY <= (int)WEFT__STACK_CLASS_FIRST,
	       "what a future awaits is no class of a stack");

/* A task that was just made ready and should run now, if the tick allows. */
static struct weft__task *run_next(struct weft__worker *worker,
				   struct weft__task *task)
{
	if (weft__unlikely(task->pin || !weft__fuse_lasts(worker))) {
		weft__push_next(worker, task);
		return NULL;
	}
	worker->fuse--;
	return task;
}

/* Ends a child of fork() that returned from a task: it has no worker. */
static inline void assert_no_child(struct weft__worker *worker)
{
	weft__assert(worker != NULL, "a child of fork() returned from its "
				     "task: end it by _exit()");
}

/* A task of the root scope has its result: wakes a thread that waits for it, if
 * there is one. */
static void root_end(struct weft__worker *worker, struct weft__task *task)
{
	struct weft_scope *scope = task->scope;
	uint64_t state = WEFT__DROPPED;

	if (weft__task_is(task, WEFT__TASK_HANDLE))
		state = weft__task_finish(task);
	if (state & WEFT__DROPPED)
		weft__task_free(worker->runtime, worker, task);
	else if (state & WEFT__JOINED)
		/* The record may be another task's by now: a useless hint. */
		weft__task_wake_threads(task); /* mutate: wake */
	weft__scope_count_end(worker, scope);
}

/* Publishes the result.  True: the owner of the scope waits for it.  Afterwards
 * neither the record nor the scope may be touched. */
static inline bool task_publish(struct weft__worker *worker,
				struct weft__task *task,
				struct weft_scope *scope)
{
	if (weft__task_is(task, WEFT__TASK_HANDLE)) {
		/* A joiner counts the end itself. */
		if (weft__task_finish(task) & WEFT__JOINED)
			return true;
	} else {
		weft__task_free(worker->runtime, worker, task);
	}
	return weft__scope_count_end(worker, scope);
}

/* The end of a task with extras, which most short tasks lack.  May suspend. */
static __attribute__((noinline)) void task_end_extras(struct weft__task *task,
						      int64_t result)
{
	assert_no_child(weft__worker_self());
	weft__assert(!task->scopes, "a task returned with a scope still open");
	weft__assert(!task->within,
		     "a task returned with a deadline block still open");
	if (weft__task_is(task, WEFT__TASK_ARG_HEAP))
		weft__task_arg_free(weft__worker_self()->runtime, task);
	if (weft__task_is(task, WEFT__TASK_REPORTED))
		weft__scope_hear(task, result);
	if (weft__task_is(task, WEFT__TASK_LOCALS))
		weft__task_locals_end(task);
	if (weft__task_is(task, WEFT__TASK_REPORTED))
		weft__scope_dismiss(weft__scope(task->scope));
	if (weft__task_is(task, WEFT__TASK_LINKED))
		weft__scope_unlink(task);
}

/* The running task has returned, and is still a task. */
static inline void task_returned(struct weft__task *task, int64_t result)
{
	if (weft__unlikely(weft__task_is(
		    task, WEFT__TASK_ARG_HEAP | WEFT__TASK_LINKED |
				  WEFT__TASK_WITHIN | WEFT__TASK_REPORTED |
				  WEFT__TASK_LOCALS)))
		task_end_extras(task, result);
}

/* The running task has returned, and ends here.  Returns the owner of its scope
 * if the owner waits for that and the caller must run it. */
static struct weft__task *task_end(struct weft__worker *worker,
				   struct weft__task *task, int64_t result)
{
	struct weft_scope *scope = task->scope;
	struct weft__task *owner = weft__scope(scope)->owner;
	uint64_t owner_id = weft__scope(scope)->owner_id;

	task->result = result;
	weft__count(worker, WEFT__N_ENDED, 1);
	if (weft__unlikely(result < 0) &&
	    !weft__task_is(task, WEFT__TASK_REPORTED))
		weft__scope_child_failed(worker, scope, result);
	if (weft__unlikely(!owner)) {
		root_end(worker, task);
		return NULL;
	}
	if (weft__joining_take(worker)) {
		weft__task_finish_joined(task);
		return owner;
	}
	if (!task_publish(worker, task, scope))
		return NULL;
	return weft__task_notify(owner, owner_id) ? owner : NULL;
}

void weft__future_end(struct weft__worker *worker, struct weft__task *task,
		      int64_t result)
{
	struct weft__task *owner;

	/* These calls still count as the future's. */
	task_returned(task, result);
	assert_no_child(weft__worker_self());
	worker->polled = NULL;
	weft__memory_free(worker->runtime->memory, task->room,
			  sizeof(*task->room));
	owner = task_end(worker, task, result);
	if (owner)
		weft__push_next(worker, owner); /* mutate: wake */
}

/* A task that inherited a deadline runs as a whole in a block with it. */
static __attribute__((noinline)) int64_t run_within(struct weft__task *task,
						    void *arg)
{
	struct weft_within within;
	int64_t result;

	weft__within_inherit(&within, task);
	result = task->fn(arg);
	weft_within_end(&within);
	return result;
}

static inline int64_t run_body(struct weft__task *task)
{
	void *arg = task->arg;

	if (weft__unlikely(weft__task_is(
		    task, WEFT__TASK_ARG_HEAP | WEFT__TASK_RAW_ARG)))
		arg = task->arg_heap;
	if (weft__unlikely(task->deadline_ns != WEFT_NEVER))
		return run_within(task, arg);
	return task->fn(arg);
}

/* Sanitizers tell tasks apart by their stacks. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN)
enum { REUSE_AT_ONCE = 0 };
#else
enum { REUSE_AT_ONCE = 1 };
#endif

/* Every task's bottom frame.  A task that ends passes its stack to the next one
 * if that has none, and so saves the switch. */
__attribute__((noreturn)) void weft__task_main(struct weft__worker *worker)
{
	struct weft__stack *stack = worker->current->stack;
	struct weft__task *next;

	weft__fiber_arrive(&worker->own, stack);
	weft__arrive(worker);
	for (;;) {
		struct weft__task *task = worker->current;
		int64_t result;

		weft__count(worker, WEFT__N_POLLS, 1);
		result = run_body(task);
		task_returned(task, result);
		worker = weft__worker_self();
		assert_no_child(worker);
		stack->task = NULL;
		task->stack = NULL;
		next = task_end(worker, task, result);
		if (next)
			next = run_next(worker, next);
		if (!next)
			next = weft__pick(worker);
		if (!next || next->stack)
			break;
		if (!REUSE_AT_ONCE || next->stack_class != stack->size_class ||
		    weft__task_is(next, WEFT__TASK_PIN)) {
			if (!weft__bind(worker, next))
				next = NULL;
			break;
		}
		worker->current = next;
		/* Before it has a stack, for the optimistic read of both
		 * (optimistic_read.h).  Emits no instruction. */
		__asm__ volatile("" ::: "memory");
		next->stack = stack;
		stack->task = next;
		stack->since_ns = worker->tick.clock_ns;
		worker->ops_left = WEFT__OPS_BUDGET;
	}
	worker->left_stack = stack;
	worker->left_how = WEFT__LEFT_DONE;
	worker->current = next;
	worker->ops_left = WEFT__OPS_BUDGET;
	weft__fiber_last_leave(&worker->own, stack, next ? next->stack : NULL);
	weft__context_leave(next ? next->sp : worker->sched_sp, worker);
}

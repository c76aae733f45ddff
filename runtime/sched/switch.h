/* SPDX-License-Identifier: MIT */
/*
 * Switch - from one task to the next.
 *
 * A task that waits picks the next one itself and switches to it directly.
 * What remains to be done about the task that was left - park it, queue it,
 * free its stack - is done on arrival, by whoever runs next on this worker:
 * only then is its stack out of use (T2 in task.h).
 */
#ifndef WEFT_RUNTIME_SCHED_SWITCH_H
#define WEFT_RUNTIME_SCHED_SWITCH_H

#include "runtime/sched/context_switch.h"
#include "runtime/sched/stack_cache.h"
#include "runtime/sched/wait_reason.h"

/*
 * Joining by a switch.  The joiner goes to the slot `joining` instead of being
 * parked: most tasks that are joined so end without waiting, and then their
 * worker takes the joiner back out and goes on with it, and neither state word
 * was touched by a read-modify-write.  When the joined task waits or yields
 * after all, the joiner is parked first.  A helper of a late worker may take it
 * out too, and park it, so that a deadline or a cancellation can reach it.
 *
 *   J1  Who is in `joining` joins (next) what that worker runs (current).
 *   J2  What it joins is not marked JOINED; whoever takes the joiner out marks
 *       it, before he parks the joiner.
 *   J3  A task that is DONE and JOINED has its end counted by the joiner, and
 *       one that is DONE alone has counted it itself.
 */
static inline struct weft__task *
weft__joining_take(struct weft__worker *worker)
{
	return weft__handoff_slot_take(&worker->joining, worker->fenced);
}

/* Parks a joiner that was taken out of a slot `joining`.  False: what it waits
 * for has come; the caller queues it. */
static inline bool weft__joiner_park(struct weft__task *joiner)
{
	return weft__task_join_late(joiner->next) && weft__task_park(joiner);
}

/* The task that runs is about to be left: its joiner must be one that can be
 * woken. */
void weft__joining_park(struct weft__worker *worker);

/* Gives a task that never ran its stack.  False: it is a future, and the
 * scheduler's to run next; or there is none, and it waits for one. */
static inline bool weft__bind(struct weft__worker *worker,
			      struct weft__task *task)
{
	struct weft__stack *stack;

	if (weft__unlikely(weft__task_is_future(task))) {
		worker->handed = task;
		return false;
	}
	stack = weft__stack_get(worker, task->stack_class);
	if (weft__unlikely(!stack)) {
		weft__stack_wait_add(worker, task);
		return false;
	}
	stack->task = task;
	stack->since_ns = worker->tick.clock_ns;
	task->sp = weft__context_prepare(stack, worker->runtime->control);
	/* In this order, for who reads both (dump/still.h); no instruction. */
	__asm__ volatile("" ::: "memory");
	task->stack = stack;
	if (weft__unlikely(weft__task_is(task, WEFT__TASK_PIN)))
		task->pin = (uint16_t)(worker->index + 1);
	return true;
}

/* On the new stack: deals with what was left. */
static inline void weft__arrive(struct weft__worker *worker)
{
	if (worker->left_how == WEFT__LEFT_YIELD)
		weft__push(worker, worker->left);
	else if (worker->left_how == WEFT__LEFT_PARK) {
		if (weft__unlikely(!weft__task_park(worker->left)))
			weft__push(worker, worker->left); /* mutate: wake */
	} else if (worker->left_how == WEFT__LEFT_JOIN) {
		/* It has left its stack. */
		weft__handoff_slot_put(&worker->joining, worker->left);
	} else if (worker->left_how == WEFT__LEFT_DONE) {
		weft__stack_put(worker, worker->left_stack);
	}
	worker->left_how = WEFT__LEFT_NOTHING;
}

/* What was to be switched to has no stack, and gets none now; how what runs is
 * to be left then. */
enum weft__left weft__left_unbound(struct weft__task *next,
				   enum weft__left how);

/* Leaves the running task for `next`, or for the scheduler if NULL.  Returns
 * when it is run again, on whatever worker that is. */
static inline __attribute__((always_inline)) struct weft__worker *
weft__switch_to(struct weft__worker *worker, struct weft__task *next,
		enum weft__left how)
{
	struct weft__task *self = worker->current;

	if (weft__unlikely(weft__handoff_slot_has(&worker->joining) != NULL))
		weft__joining_park(worker);
	if (next && !next->stack && !weft__bind(worker, next)) {
		how = weft__left_unbound(next, how);
		next = NULL;
	}
	worker->left = self;
	worker->left_how = how;
	/* Q2 in dump/still.h; no instruction. */
	__asm__ volatile("" ::: "memory");
	worker->current = next;
	worker->ops_left = WEFT__OPS_BUDGET;
	worker = weft__context_switch(&self->sp,
				      next ? next->sp : worker->sched_sp,
				      self->stack, next ? next->stack : NULL,
				      worker);
	weft__arrive(worker);
	weft__count(worker, WEFT__N_POLLS, 1);
	return worker;
}

/* Waits until somebody wakes the running task.  May return early: the caller
 * checks what it waits for (wait_reason.h), in a loop.  Returns the worker it
 * now runs on. */
struct weft__worker *weft__suspend(struct weft__worker *worker,
				   uint64_t reason);

/* True: nothing is ready, so the running task has its next turn at once; it is
 * counted as a run all the same.  Not if there is something to look at. */
static inline bool weft__turn_at_once(struct weft__worker *worker)
{
	if (weft__unlikely(!weft__alone(worker) || worker->fuse <= 1))
		return false;
	worker->fuse--;
	worker->ops_left = WEFT__OPS_BUDGET;
	weft__count(worker, WEFT__N_POLLS, 1);
	return true;
}

/* The running task goes behind all that is ready. */
struct weft__worker *weft__give_way(struct weft__worker *worker);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Switch - from one task to the next.
 *
 * A task that waits picks the next task itself and switches to it directly.
 * The rest of leaving - parking the task that was left, queueing it, or freeing
 * its stack - is done on arrival, by the task or the scheduler that runs next
 * on this worker: only then is the stack out of use (TASK2 in task.h).
 */
#ifndef WEFT_RUNTIME_SCHED_SWITCH_H
#define WEFT_RUNTIME_SCHED_SWITCH_H

#include "runtime/sched/context_switch.h"
#include "runtime/sched/exceptions.h"
#include "runtime/sched/stack_cache.h"
#include "runtime/sched/wait_reason.h"

/*
 * Joining by a switch.  The joiner goes to the hand-off slot `joining` instead
 * of being parked.  Most tasks that are joined so end without waiting; then
 * their worker takes the joiner back out and continues it, and neither state
 * word was touched by a read-modify-write.  When the joined task waits or
 * yields after all, the joiner is parked first.  A worker that helps a late one
 * may take the joiner out, too, and park it, so that a deadline or a
 * cancellation can reach it.
 *
 *   JOIN1  The task in `joining` joins (next) the task that its worker runs
 *       (current).
 *   JOIN2  The joined task is not marked JOINED; the worker that takes the
 *       joiner out marks it, before it parks the joiner.
 *   JOIN3  A task that is DONE and JOINED has its end counted by the joiner,
 *       and one that is DONE alone has counted it itself.
 */
static inline struct weft__task *
weft__joining_take(struct weft__worker *worker)
{
	return weft__handoff_slot_take(&worker->joining, worker->fenced);
}

/* Parks a joiner that was taken out of a slot `joining`.  False: its wait is
 * over; the caller queues it. */
static inline bool weft__joiner_park(struct weft__task *joiner)
{
	return weft__task_join_late(joiner->next) && weft__task_park(joiner);
}

/* The task that runs is about to be left: its joiner is parked, so that it can
 * be woken. */
void weft__joining_park(struct weft__worker *worker);

/* Gives a task that never ran its stack.  False: it is a future, which the
 * scheduler runs next; or there is no stack, and the task waits for one. */
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
	/* In this order, for readers of both (dump/optimistic_read.h); no
	 * instruction. */
	__asm__ volatile("" ::: "memory");
	task->stack = stack;
	if (weft__unlikely(weft__task_is(task, WEFT__TASK_PIN)))
		task->pin = (uint16_t)(worker->index + 1);
	return true;
}

/* On the new stack: deals with the task that was left. */
static inline void weft__arrive(struct weft__worker *worker)
{
	if (worker->left_how == WEFT__LEFT_YIELD)
		weft__push(worker, worker->left);
	else if (worker->left_how == WEFT__LEFT_PARK) {
		if (weft__unlikely(!weft__task_park(worker->left)))
			weft__push(worker, worker->left); /* mutate: wake */
	} else if (worker->left_how == WEFT__LEFT_JOIN) {
		/* The joiner has left its stack. */
		weft__handoff_slot_put(&worker->joining, worker->left);
	} else if (worker->left_how == WEFT__LEFT_DONE) {
		weft__stack_put(worker, worker->left_stack);
	}
	worker->left_how = WEFT__LEFT_NOTHING;
}

/* The next task has no stack, and gets none now.  Returns how the running task
 * is to be left then. */
enum weft__left weft__left_unbound(struct weft__task *next,
				   enum weft__left how);

/* weft__switch_to() for a task without exceptions. */
static inline __attribute__((always_inline)) struct weft__worker *
weft__switch_plain(struct weft__worker *worker, struct weft__task *next,
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
	/* OPT2 in dump/optimistic_read.h; no instruction. */
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

/* The same for a task that takes its exceptions with it. */
struct weft__worker *weft__switch_with_exceptions(struct weft__worker *worker,
						  struct weft__task *next,
						  enum weft__left how);

/* Leaves the running task for `next`, or for the scheduler if NULL.  Returns
 * when it is run again, on whatever worker that is. */
static inline __attribute__((always_inline)) struct weft__worker *
weft__switch_to(struct weft__worker *worker, struct weft__task *next,
		enum weft__left how)
{
	if (weft__exceptions_any(worker))
		return weft__switch_with_exceptions(worker, next, how);
	return weft__switch_plain(worker, next, how);
}

/* Waits until the running task is woken.  May return early: the caller checks
 * what it waits for (wait_reason.h), in a loop.  Returns the worker that the
 * task now runs on. */
struct weft__worker *weft__suspend(struct weft__worker *worker,
				   uint64_t reason);

/* True: nothing is ready, so the running task has its next turn immediately;
 * that counts as a run all the same.  False if a look around is due. */
static inline bool weft__turn_at_once(struct weft__worker *worker)
{
	if (weft__unlikely(!weft__alone(worker) || !weft__fuse_lasts(worker)))
		return false;
	worker->fuse--;
	worker->ops_left = WEFT__OPS_BUDGET;
	weft__count(worker, WEFT__N_POLLS, 1);
	return true;
}

/* The running task is queued behind all that is ready. */
struct weft__worker *weft__give_way(struct weft__worker *worker);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Hold - looking at a task that waits, while no worker can run it.
 *
 *	the holder			    a waker
 *	----------			    -------
 *	clears PARKED, and so		    finds it not PARKED:
 *	holds the task			    leaves NOTIFIED, goes on
 *	  ... reads ...
 *	parks it, or, since it is
 *	NOTIFIED, queues it
 *
 * Invariants
 *   HOLD1  As with a wake (TASK1), exactly one of all that try to clear PARKED
 *       does it: that one alone parks the task again or queues it.
 *   HOLD2  During the hold the task's stack does not change, and neither does
 *       anything that its waiting call needs: a wait ends only when the task
 *       itself runs.
 *   HOLD3  No wake is lost.  A wake that finds the task held leaves NOTIFIED,
 *       and the holder queues the task.  So a hold must be short.
 *   HOLD4  The holder of a task takes only those locks that wakers may take:
 *       the locks of objects, under which no thread waits for a task.
 *
 * Orderings
 *   [task.hold]  the park's RMW release -> hold RMW acquire: the stack, and the
 *       reason.  The words that the holder reads are not written before the
 *       task runs again, which comes after the release of weft__task_park():
 *       [task.wake].
 */
#ifndef WEFT_RUNTIME_SCHED_TASK_HOLD_H
#define WEFT_RUNTIME_SCHED_TASK_HOLD_H

#include "runtime/sched/worker.h"

/* Holds the task if it is PARKED; *ret_state is its state before. */
static inline bool weft__task_hold(struct weft__task *task,
				   uint64_t *ret_state)
{
	/* relaxed: decided by the CAS. */
	uint64_t old = weft__load(&task->state, relaxed);

	do {
		if (!(old & WEFT__PARKED)) /* mutate: recheck=false */
			return false;
		/* pairs: [task.hold] */
	} while (!weft__cas(&task->state, &old, old & ~WEFT__PARKED,
			    acquire)); /* mutate: retry */
	*ret_state = old;
	return true;
}

/* Ends the hold.  `here` is the calling worker, or NULL. */
static inline void weft__task_release(struct weft_runtime *runtime,
				      struct weft__worker *here,
				      struct weft__task *task)
{
	if (!weft__task_park(task))
		weft__enqueue(runtime, here, task); /* mutate: wake */
}

#endif

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
 *   H1  As with a wake (T1), of all that want to clear PARKED one does: he, and
 *       no other, parks the task again or queues it.
 *   H2  Meanwhile its stack stays as it is, and whatever the call needs that it
 *       waits in: nothing of a wait ends but by the task's own running.
 *   H3  No wake is lost.  The one that finds the task held leaves NOTIFIED, and
 *       who holds it queues it.  So a hold must be short.
 *   H4  Who holds a task takes no more than what wakers may take: the locks of
 *       objects, under which nobody waits for a task.
 *
 * Orderings
 *   [task.hold]  the park's RMW release -> hold RMW acquire: the stack, and the
 *       reason.  What is read is not written before the task runs again, which
 *       comes after the release of weft__task_park(): [task.wake].
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

/* Lets it go.  `here` is the calling worker, or NULL. */
static inline void weft__task_release(struct weft_runtime *runtime,
				      struct weft__worker *here,
				      struct weft__task *task)
{
	if (!weft__task_park(task))
		weft__enqueue(runtime, here, task); /* mutate: wake */
}

#endif

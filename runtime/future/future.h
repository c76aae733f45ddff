/* SPDX-License-Identifier: MIT */
/*
 * Future - a task without a stack: a function that is called whenever the task
 * is woken, until it returns something other than WEFT_PENDING.
 *
 * To the scheduler it is a task: its record is queued, stolen, parked, woken,
 * cancelled and joined.  It differs in where it runs, and in where the nodes of
 * its waits lie.  It runs on the scheduler's own stack: a worker that picks a
 * future to switch to hands it to the scheduler (weft__bind).  Then `polled` is
 * set instead of `current`, and so each call that would suspend refuses.  The
 * nodes lie in its record, in words that otherwise an operation in the kernel
 * or an open scope uses; or, since few futures have both, in a block of memory
 * of its own (`room`).
 *
 * An await is a call that begins a wait and returns PENDING; the same call,
 * made again, returns how the wait ended.  `awaits` is the kind of the wait.
 *
 *   FUT1  While a future awaits something it neither begins another wait nor
 *       ends.  So alarms, operations and waiters have ended before their memory
 *       goes.
 *   FUT2  A future is parked only after its function has returned, by a
 *       read-modify-write that fails if it was woken meanwhile: then it is
 *       queued again (TASK3 in task.h).
 */
#ifndef WEFT_RUNTIME_FUTURE_FUTURE_H
#define WEFT_RUNTIME_FUTURE_FUTURE_H

#include <weft/future.h>

#include "runtime/sched/future_room.h"
#include "runtime/sched/upcalls.h"

/* The future returned WEFT_PENDING.  If its scope does not know it yet, links
 * it.  If it awaits nothing, so waits for something of its own, arms an alarm
 * for its deadline.  If that has passed, perhaps since the future looked, the
 * future is polled once more, but only once, as it may go on in spite of it. */
void weft__future_wait(struct weft__worker *worker, struct weft__task *task);

/* Disarms the alarm in the future's room, if there is one. */
void weft__future_disarm(struct weft__worker *worker, struct weft__task *task);

/* The alarm in the future's record, without its `task`. */
static inline struct weft__alarm *weft__future_alarm(struct weft__task *task)
{
	return (struct weft__alarm *)(void *)task->sleep;
}

/* The index of that alarm's word with the time for which it is set. */
enum { WEFT__SLEEP_UNTIL = 3 };

/* The future that such an alarm is for.  It is armed, so the future lives. */
static inline uint64_t weft__future_id(struct weft__alarm *alarm)
{
	char *at = (char *)(void *)alarm - offsetof(struct weft__task, sleep);

	return weft__running_id((struct weft__task *)(void *)at);
}

/* As weft__interrupted(). */
int weft__future_interrupted(struct weft__worker *worker,
			     struct weft__task *task);

/*
 * Awaits.
 *
 *	r = weft__await_enter(WEFT__AWAITS_..., on, with, &worker, &task);
 *	if (r < 0)
 *		return r;
 *	if (task->awaits == WEFT__AWAITS_NOTHING) {
 *		... can it be done now?  return, or:
 *		weft__await_begin(WEFT__AWAITS_..., worker, task);
 *		... make it known that the task waits ...
 *		return WEFT_PENDING;
 *	}
 *	... has it come, or is the wait interrupted?  Else return WEFT_PENDING;
 *	return weft__await_end(worker, task, r);
 */

#define WEFT__AWAITS_ANOTHER \
	"a future awaits another thing before the last has come"

/* 0; or a result, which may be WEFT_PENDING: the future has done enough, and
 * begins to wait in its next turn.  `on` and `with` tell this await from others
 * of its kind. */
int weft__await_enter(enum weft__awaits what, const void *on, uint64_t with,
		      struct weft__worker **ret_worker,
		      struct weft__task **ret_task);

/* Called before the wait is made known: arms the alarm of the future's
 * deadline, if it has one. */
void weft__await_begin(enum weft__awaits what, struct weft__worker *worker,
		       struct weft__task *task);

/* The wait has ended.  Returns r. */
int weft__await_end(struct weft__worker *worker, struct weft__task *task,
		    int r);

/* Makes the future be polled again in its next turn; or after length_ns, or at
 * its deadline if that is earlier.  Both return WEFT_PENDING. */
int weft__await_turn(struct weft__task *task);
int weft__await_pause(struct weft__worker *worker, struct weft__task *task,
		      uint64_t length_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Future - a task that has no stack, but a function that is called whenever the
 * task is woken, until it says something else than WEFT_PENDING.
 *
 * To the scheduler it is a task: queued, stolen, parked, woken, cancelled and
 * joined by its record.  It differs in where it runs, and in where the nodes of
 * its waits are.  It runs on the scheduler's own stack: who picks one to switch
 * to hands it to the scheduler (weft__bind).  There is no `current` then but
 * `polled`, and so each call that would suspend refuses.  The nodes are in its
 * record, in the words that an operation in the kernel needs, too, or an open
 * scope; or, since few have both, in memory of its own (`room`).
 *
 * An await is a call that begins a wait and says PENDING, and when it is called
 * again says how it ended; `awaits` tells of what kind the wait is.
 *
 *   U1  While it awaits something it neither begins another wait nor ends; so
 *       alarms, operations and waiters have ended before their memory goes.
 *   U2  It is parked only after its function has returned, by a
 *       read-modify-write that fails if it was woken meanwhile: then it is
 *       queued again (T3 in task.h).
 */
#ifndef WEFT_RUNTIME_FUTURE_FUTURE_H
#define WEFT_RUNTIME_FUTURE_FUTURE_H

#include <weft/future.h>

#include "runtime/sched/future_room.h"
#include "runtime/sched/upcalls.h"

/* It returned WEFT_PENDING, and awaits nothing, so waits for something of its
 * own; or its scope does not know of it: now that finds it, and an alarm is
 * armed for its deadline.  If that has passed, perhaps since the future looked,
 * it is polled once more; once, for it may go on all the same. */
void weft__future_wait(struct weft__worker *worker, struct weft__task *task);

/* The alarm in its room is armed no more, if it has one. */
void weft__future_disarm(struct weft__worker *worker, struct weft__task *task);

/* The alarm in its record, all of it but `task`. */
static inline struct weft__alarm *weft__future_alarm(struct weft__task *task)
{
	return (struct weft__alarm *)(void *)task->sleep;
}

/* The word of it that is the time for which it is set. */
enum { WEFT__SLEEP_UNTIL = 3 };

/* For whom such an alarm is.  It is armed, so the task lives. */
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
 *		... done at once?  return, or:
 *		weft__await_begin(WEFT__AWAITS_..., worker, task);
 *		... make it known that the task waits ...
 *		return WEFT_PENDING;
 *	}
 *	... has it come, or is it to be given up?  Else return WEFT_PENDING;
 *	return weft__await_end(worker, task, r);
 */

#define WEFT__AWAITS_ANOTHER \
	"a future awaits another thing before the last has come"

/* 0; or a result, as which WEFT_PENDING counts, too: it has done enough, and
 * begins to wait in its next turn.  on, with: what tells this await from others
 * of its kind. */
int weft__await_enter(enum weft__awaits what, const void *on, uint64_t with,
		      struct weft__worker **ret_worker,
		      struct weft__task **ret_task);

/* Before it is made known that the task waits: arms the alarm of its deadline,
 * if it has one. */
void weft__await_begin(enum weft__awaits what, struct weft__worker *worker,
		       struct weft__task *task);

/* It no longer waits.  Returns r. */
int weft__await_end(struct weft__worker *worker, struct weft__task *task,
		    int r);

/* To be polled again in its next turn; or after a while, or at its deadline if
 * that is to come before.  Both return WEFT_PENDING. */
int weft__await_turn(struct weft__task *task);
int weft__await_pause(struct weft__worker *worker, struct weft__task *task,
		      uint64_t length_ns);

#endif

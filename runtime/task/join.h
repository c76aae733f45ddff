/* SPDX-License-Identifier: MIT */
/*
 * Join - the parts of weft_join() for a task that waits for other things, too:
 * it looks, marks what has not ended, so that its end wakes the caller, and
 * takes the mark back before it goes on.
 */
#ifndef WEFT_RUNTIME_TASK_JOIN_H
#define WEFT_RUNTIME_TASK_JOIN_H

#include <weft/task.h>

#include "runtime/sched/worker.h"

/* 0: it has ended, and weft_join() would not wait; -EAGAIN: not yet; or what
 * weft_join() would refuse it with. */
int weft__join_look(struct weft__worker *worker, struct weft_task handle);

/* For one that has not ended.  False: it has by now, and is not marked. */
bool weft__join_mark(struct weft__worker *worker, struct weft_task handle);

/* Of one that was marked. */
void weft__join_unmark(struct weft__worker *worker, struct weft_task handle);

/* The runtime ends without the tasks that are left: threads that wait for one,
 * or will, are let go. */
void weft__waits_give_up(struct weft_runtime *runtime);

#endif

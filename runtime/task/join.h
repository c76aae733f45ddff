/* SPDX-License-Identifier: MIT */
/*
 * Join - the parts of weft_join() for a task that waits for other things too:
 * it looks, marks tasks that have not ended, so that their ends wake the
 * caller, and removes the marks before it goes on.
 */
#ifndef WEFT_RUNTIME_TASK_JOIN_H
#define WEFT_RUNTIME_TASK_JOIN_H

#include <weft/task.h>

#include "runtime/sched/worker.h"

/* 0: the task has ended, and weft_join() would not wait; -EAGAIN: not yet; or
 * the error that weft_join() would return. */
int weft__join_look(struct weft__worker *worker, struct weft_task handle);

/* For a task that has not ended.  False: it has by now, and is not marked. */
bool weft__join_mark(struct weft__worker *worker, struct weft_task handle);

/* For a marked task. */
void weft__join_unmark(struct weft__worker *worker, struct weft_task handle);

/* The runtime ends without the tasks that are left: ends the waits of threads
 * for them, present and future. */
void weft__waits_give_up(struct weft_runtime *runtime);

#endif

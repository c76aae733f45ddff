/* SPDX-License-Identifier: MIT */
#ifndef WEFT_RUNTIME_TASK_WITHIN_H
#define WEFT_RUNTIME_TASK_WITHIN_H

#include "runtime/sched/task.h"

/* Opens a block for the deadline that the running task has inherited. */
void weft__within_inherit(struct weft_within *within, struct weft__task *task);

/* The time at which the waits of a held task end early, or WEFT_NEVER. */
uint64_t weft__within_deadline(struct weft__task *task);

#endif

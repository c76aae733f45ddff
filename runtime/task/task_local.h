/* SPDX-License-Identifier: MIT */
#ifndef WEFT_RUNTIME_TASK_TASK_LOCAL_H
#define WEFT_RUNTIME_TASK_TASK_LOCAL_H

#include "runtime/sched/task.h"

/* The running task returns, and has LOCALS: runs its deferred calls and
 * destroys its values.  May suspend. */
void weft__task_locals_end(struct weft__task *task);

#endif

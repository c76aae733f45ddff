/* SPDX-License-Identifier: MIT */
#ifndef WEFT_RUNTIME_TASK_TASK_LOCAL_H
#define WEFT_RUNTIME_TASK_TASK_LOCAL_H

#include <weft/task_local.h>

#include "runtime/sched/task.h"

/* The running task returns, and has LOCALS: runs its deferred calls and
 * destroys its values.  May suspend. */
void weft__task_locals_end(struct weft__task *task);

/* Takes back what the running task gave to weft_defer() last with these two. */
void weft__deferred_drop(weft_defer_fn fn, const void *arg);

#endif

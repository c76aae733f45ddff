/* SPDX-License-Identifier: MIT */
#ifndef WEFT_RUNTIME_LOOP_H
#define WEFT_RUNTIME_LOOP_H

#include "runtime/sched/runtime.h"

/* Makes the calling thread's loop that of a runtime without threads, whose
 * worker is in no step.  0, or -errno. */
int weft__loop_begin(struct weft_runtime *runtime);

/* Gives the worker back to the thread: from here on a park waits.  0, or
 * -EDEADLK or -EPERM: the call is not this thread's. */
int weft__loop_end(struct weft_runtime *runtime);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef WEFT_RUNTIME_TASK_TASK_MAIN_H
#define WEFT_RUNTIME_TASK_TASK_MAIN_H

#include "runtime/sched/worker.h"

/* The bottom frame of a task, entered by the first switch to its stack. */
__attribute__((noreturn)) void weft__task_main(struct weft__worker *worker);

/* The function of a future has returned a result: the future ends as a task
 * does. */
void weft__future_end(struct weft__worker *worker, struct weft__task *task,
		      int64_t result);

#endif

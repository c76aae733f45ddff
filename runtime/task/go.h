/* SPDX-License-Identifier: MIT */
#ifndef WEFT_RUNTIME_TASK_GO_H
#define WEFT_RUNTIME_TASK_GO_H

#include "runtime/sched/runtime.h"

/* Whether the arguments or options for a task make no sense. */
bool weft__go_wrong(weft_fn fn, const void *arg, size_t arg_bytes,
		    const struct weft_task_opts *opts);

/* Starts a task in the root scope; `here` may be NULL. */
int weft__root_go(struct weft_runtime *runtime, struct weft__worker *here,
		  weft_fn fn, const void *arg, size_t arg_bytes,
		  const struct weft_task_opts *opts, bool raw_arg);

#endif

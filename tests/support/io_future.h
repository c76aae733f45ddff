/* SPDX-License-Identifier: MIT */
/*
 * Futures, and tasks beside them, that are started with a handle, and joined;
 * real ones, with a ring.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_FUTURE_H
#define WEFT_TESTS_SUPPORT_IO_FUTURE_H

#include "tests/support/io_kit.h"

static inline struct weft_task start(struct weft_scope *scope, weft_fn fn,
				     unsigned flags, const void *state,
				     size_t bytes)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.flags = flags;
	opts.ret_task = &task;
	ck_assert_int_eq(weft_go_opts(scope, fn, state, bytes, &opts), 0);
	return task;
}

static inline struct weft_task start_future(struct weft_scope *scope,
					    weft_fn poll, const void *state,
					    size_t bytes)
{
	return start(scope, poll, WEFT_FUTURE, state, bytes);
}

static inline int64_t join(struct weft_task task)
{
	int64_t result = -1;

	ck_assert_int_eq(weft_join(task, &result), 0);
	return result;
}

#endif

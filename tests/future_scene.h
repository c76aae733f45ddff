/* SPDX-License-Identifier: MIT */
/*
 * What the suites of futures share.
 */
#ifndef WEFT_TESTS_FUTURE_SCENE_H
#define WEFT_TESTS_FUTURE_SCENE_H

#include "tests/sched_scene.h"

static inline struct weft_task start_future(struct weft_scope *scope,
					    weft_fn poll, const void *state,
					    size_t bytes)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.name = "a future";
	opts.flags = WEFT_FUTURE;
	opts.ret_task = &task;
	EXPECT(weft_go_opts(scope, poll, state, bytes, &opts) == 0);
	EXPECT(task.id != 0);
	return task;
}

static inline int64_t join(struct weft_task task)
{
	int64_t result = -1;

	EXPECT(weft_join(task, &result) == 0);
	return result;
}

static inline int64_t sleep_long(void *state)
{
	(void)state;
	return weft_await_sleep(WEFT_SEC(100));
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the suites of futures share.
 */
#ifndef WEFT_TESTS_SUPPORT_FUTURE_SCENE_H
#define WEFT_TESTS_SUPPORT_FUTURE_SCENE_H

#include "runtime/base/atomic.h"
#include "tests/support/sched_scene.h"

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

/* Sleeps so often, so long each time. */
struct sleeper {
	WEFT_FUTURE_STATE;
	int times;
	uint64_t length_ns;
	uint64_t began_ns;
	weft__atomic(int) *ended;
};

static inline int64_t sleep_times(void *state)
{
	struct sleeper *s = state;
	int r;

	WEFT_FUTURE_BEGIN(s);
	for (; s->times > 0; s->times--) {
		s->began_ns = weft_now();
		WEFT_AWAIT_AS(s, r, weft_await_sleep(s->length_ns));
		if (r < 0)
			return r;
		EXPECT(weft_now() - s->began_ns >= s->length_ns);
	}
	WEFT_FUTURE_END(s);
	weft__add(s->ended, 1, relaxed);
	return 0;
}

#endif

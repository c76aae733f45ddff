/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the suites of scopes and of cancellation share: a main task
 * under one of many seeds, and tasks that give an answer.
 */
#ifndef WEFT_TESTS_SUPPORT_SCHED_SCENE_H
#define WEFT_TESTS_SUPPORT_SCHED_SCENE_H

#include <weft/weft.h>

#include "tests/fake/fake_check.h"

enum { SEEDS = 24 };

static inline struct fake_result run_main(int i, weft_fn main_fn)
{
	struct fake_config config = {
		.seed = seed_of(i),
		.workers = 1 + (unsigned)i % 4,
		.budgets_vary = i >= 8,
		.look_ns = i % 3 == 0 ? 200 : 0,
	};

	return must_run(&config, main_fn, NULL);
}

/* A task that returns its argument, after `yields` yields. */
struct answer {
	int64_t result;
	int yields;
	uint64_t sleep_ns;
};

static inline int64_t give(void *arg)
{
	struct answer answer = *(struct answer *)arg;

	for (int i = 0; i < answer.yields; i++)
		EXPECT(weft_yield() == 0);
	if (answer.sleep_ns)
		EXPECT(weft_sleep(answer.sleep_ns) == 0);
	return answer.result;
}

static inline struct weft_task start(struct weft_scope *scope, weft_fn fn,
				     const void *arg, size_t bytes)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.ret_task = &task;
	EXPECT(weft_go_opts(scope, fn, arg, bytes, &opts) == 0);
	EXPECT(task.id != 0);
	return task;
}

static inline struct weft_task start_give(struct weft_scope *scope,
					  int64_t result, int yields,
					  uint64_t sleep_ns)
{
	struct answer answer = { result, yields, sleep_ns };

	return start(scope, give, &answer, sizeof(answer));
}

#endif

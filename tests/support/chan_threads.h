/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the suites of channels on real threads share.
 */
#ifndef WEFT_TESTS_SUPPORT_CHAN_THREADS_H
#define WEFT_TESTS_SUPPORT_CHAN_THREADS_H

#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

/* A tool makes each of them slow. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN) || defined(WEFT_VALGRIND)
enum { SLOWLY = 5 };
#else
enum { SLOWLY = 1 };
#endif

/* With WEFT_TEST_LONG in the environment thirty times as often. */
static inline uint32_t often(uint32_t count)
{
	return count / SLOWLY * (getenv("WEFT_TEST_LONG") ? 30 : 1);
}

static inline struct weft_task submit(struct weft_runtime *runtime, weft_fn fn,
				      unsigned flags)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.ret_task = &task;
	opts.flags = flags;
	EXPECT(weft_submit(runtime, fn, NULL, 0, &opts) == 0);
	return task;
}

#endif

/* SPDX-License-Identifier: MIT */
/* The only thread of the pool is taken, so that what needs one waits.  For
 * runtimes with a blocking_threads_max of 1. */
#ifndef WEFT_TESTS_SUPPORT_POOL_KIT_H
#define WEFT_TESTS_SUPPORT_POOL_KIT_H

#include "tests/support/io_kit.h"

static weft__atomic(bool) pool_held, pool_freed;

static inline int64_t pool_hold(void *arg)
{
	(void)arg;
	/* pairs: [test.pool] */
	weft__store(&pool_held, true, release);
	/* pairs: [test.pool] */
	while (!weft__load(&pool_freed, acquire))
		thread_pause_ns(50000);
	return 0;
}

static inline int64_t pool_hold_from_task(void *arg)
{
	(void)arg;
	return weft_blocking(pool_hold, NULL);
}

static inline void pool_take(struct weft_scope *scope)
{
	/* relaxed: before the task is started. */
	weft__store(&pool_held, false, relaxed);
	weft__store(&pool_freed, false, relaxed);
	ck_assert_int_eq(weft_go(scope, pool_hold_from_task, NULL, 0), 0);
	/* pairs: [test.pool] */
	wait_until(weft__load(&pool_held, acquire));
}

static inline void pool_free(void)
{
	/* pairs: [test.pool] */
	weft__store(&pool_freed, true, release);
}

static inline bool pool_is_asked(void)
{
	struct weft_blocking_stats stats;

	ck_assert_int_eq(weft_blocking_stats_get(weft_runtime_self(), &stats),
			 0);
	return stats.queued > 0;
}

/* fn needs a thread: it is cancelled while it waits for one, and then its
 * deadline passes. */
static inline void pool_interrupt(weft_fn fn)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t r = 0;

	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, fn, NULL, 0, &opts), 0);
		wait_until(pool_is_asked());
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(weft_join(task, &r), 0);
	}
	ck_assert_int_eq(r, -ECANCELED);
	WEFT_WITHIN(WEFT_MS(2))
		r = fn(NULL);
	ck_assert_int_eq(r, -ETIMEDOUT);
}

/* Runs fn as the first task of a runtime whose pool has one thread. */
static inline void pool_run(weft_fn fn, unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	opts.blocking_threads_max = 1;
	ck_assert_int_eq(io_run_opts(fn, NULL, &opts), 0);
}

#endif

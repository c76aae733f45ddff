/* SPDX-License-Identifier: MIT */
/*
 * Calls of libraries over weft that wait for something that does not come: each
 * is cancelled while it waits, and is made again with a deadline.
 */
#ifndef WEFT_TESTS_SUPPORT_INTERRUPT_KIT_H
#define WEFT_TESTS_SUPPORT_INTERRUPT_KIT_H

#include "tests/support/io_kit.h"

/* The result of fn(&arg) in a task that is cancelled when it waits.  Nothing is
 * asserted here: what the caller has stopped has to go on first. */
static inline int64_t cancelled(weft_fn fn, void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	weft_nsec by_ns = weft_now() + WEFT_SEC(20);
	struct weft_task task;
	int64_t result = 0, r = 0;

	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		r = weft_go_opts(scope, fn, &arg, sizeof(arg), &opts);
		while (r == 0 && !task_has_settled(task) && weft_now() < by_ns)
			(void)weft_sleep(WEFT_US(200));
		if (r == 0)
			(void)weft_cancel(task);
		if (r == 0)
			r = weft_join(task, &result);
	}
	return r < 0 ? r : result;
}

static inline int64_t too_late(weft_fn fn, void *arg)
{
	int64_t r = 0;

	WEFT_WITHIN(WEFT_MS(20))
		r = fn(&arg);
	return r;
}

static inline void expect_interrupted(weft_fn fn, void *arg)
{
	ck_assert_int_eq(cancelled(fn, arg), -ECANCELED);
	ck_assert_int_eq(too_late(fn, arg), -ETIMEDOUT);
}

#endif

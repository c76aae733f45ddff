/* SPDX-License-Identifier: MIT */
/*
 * A runtime in a plain loop of poll(2): the smallest foreign loop.
 */
#ifndef WEFT_TESTS_SUPPORT_LOOP_KIT_H
#define WEFT_TESTS_SUPPORT_LOOP_KIT_H

#include "tests/support/io_kit.h"

static inline struct weft_runtime *loop_begin(void)
{
	struct weft_runtime *runtime = NULL;

	ck_assert_int_eq(weft_attach(NULL, &runtime), 0);
	return runtime;
}

static inline void loop_submit(struct weft_runtime *runtime, weft_fn fn,
			       void *arg)
{
	ck_assert_int_eq(weft_submit(runtime, fn, &arg, sizeof(arg), NULL), 0);
}

/* A wait that takes so long has missed its end. */
enum { LOOP_PATIENCE_MS = 20000 };

/* Is the descriptor readable within that time? */
static inline bool loop_readable(struct weft_runtime *runtime, int timeout_ms)
{
	struct pollfd pollfd = { weft_loop_fd(runtime), POLLIN, 0 };
	int n;

	do
		n = poll(&pollfd, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	ck_assert_int_ge(n, 0);
	ck_assert_int_eq(pollfd.revents & ~POLLIN, 0);
	return n;
}

/* Turns until nothing is left, and the descriptor reports nothing. */
static inline void loop_settle(struct weft_runtime *runtime)
{
	do
		ck_assert_int_ge(weft_turn(runtime, NULL), 0);
	while (loop_readable(runtime, 0));
}

/* Turns whenever the descriptor is readable, until the condition holds. */
#define loop_until(runtime, condition)                                       \
	do {                                                                 \
		while (!(condition)) {                                       \
			ck_assert(loop_readable(runtime, LOOP_PATIENCE_MS)); \
			ck_assert_int_ge(weft_turn(runtime, NULL), 0);       \
		}                                                            \
	} while (0)

#endif

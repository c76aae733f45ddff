/* SPDX-License-Identifier: MIT */
/*
 * Allocations of one task that fail, one after the other.  The program is
 * linked with --wrap of each that it names.
 */
#ifndef WEFT_TESTS_SUPPORT_POOR_KIT_H
#define WEFT_TESTS_SUPPORT_POOR_KIT_H

#include "tests/support/io_kit.h"

static weft__atomic(struct weft__task *) poor;
/* Only the poor task uses them. */
static unsigned poor_left;
static bool poor_refused;

static inline bool poor_refuses(void)
{
	struct weft__worker *worker = weft__worker_self();
	/* relaxed: a task finds itself there, or another. */
	struct weft__task *task = weft__load(&poor, relaxed);

	if (!task || !worker || worker->current != task || --poor_left > 0)
		return false;
	poor_refused = true;
	return true;
}

#define POOR_WRAP(name, parameters, ...)                                   \
	void *__real_##name parameters;                                    \
	void *__wrap_##name parameters;                                    \
	void *__wrap_##name parameters                                     \
	{                                                                  \
		return poor_refuses() ? NULL : __real_##name(__VA_ARGS__); \
	}

/* Makes the call again and again, with another allocation failing, until none
 * does: the call returns 0, or -ENOMEM and leaves nothing open. */
static inline void poor_sweep(weft_fn call, void *arg)
{
	int fds = fds_open();
	unsigned n = 0, failed = 0;

	do {
		int64_t r;

		poor_left = ++n;
		poor_refused = false;
		/* relaxed: as above. */
		weft__store(&poor, weft__worker_self()->current, relaxed);
		r = call(arg);
		weft__store(&poor, NULL, relaxed);
		ck_assert_msg(r == 0 || (poor_refused && r == -ENOMEM),
			      "allocation %u: %ld", n, (long)r);
		failed += r < 0;
		expect_fds(fds);
	} while (poor_refused);
	ck_assert_uint_gt(failed, 0);
}

#endif

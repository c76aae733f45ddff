/* SPDX-License-Identifier: MIT */
/*
 * Does a runtime use io_uring here?  For tests of what only io_uring does: they
 * are left out on epoll, by name.
 */
#ifndef WEFT_TESTS_SUPPORT_ENGINE_H
#define WEFT_TESTS_SUPPORT_ENGINE_H

#include <stdbool.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "tests/support/needs.h"

#define NEEDS_URING "io_uring"

static inline int64_t test_is_on_epoll(void *arg)
{
	(void)arg;
	return weft_engine(weft_runtime_self(), NULL) == WEFT_ENGINE_EPOLL;
}

/* A runtime that lacks something is not one that is refused. */
static inline bool test_may_start_on_uring(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	return weft_run(test_is_on_epoll, NULL, &opts) != 1;
}

static inline bool test_may_start_without_variable(void)
{
	return unsetenv("WEFT_ENGINE") == 0 && test_may_start_on_uring();
}

/* Not every kernel that has io_uring has all of it that weft needs, so that
 * weft is asked, in a child. */
static inline bool test_has_uring_at_all(void)
{
	return test_can(test_may_start_without_variable);
}

/* And is it not left aside by the variable? */
static inline bool test_has_uring(void)
{
	return test_can(test_may_start_on_uring);
}

#endif

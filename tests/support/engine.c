/* SPDX-License-Identifier: MIT */
#include "tests/support/engine.h"

static int64_t test_is_on_epoll(void *arg)
{
	(void)arg;
	return weft_engine(weft_runtime_self(), NULL) == WEFT_ENGINE_EPOLL;
}

/* A runtime that lacks something is not one that is refused. */
static bool test_may_start_on_uring(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	return weft_run(test_is_on_epoll, NULL, &opts) != 1;
}

static bool test_may_start_without_variable(void)
{
	return unsetenv("WEFT_ENGINE") == 0 && test_may_start_on_uring();
}

bool test_has_uring_at_all(void)
{
	return test_can(test_may_start_without_variable);
}

bool test_has_uring(void)
{
	return test_can(test_may_start_on_uring);
}

/* SPDX-License-Identifier: MIT */
/*
 * Helpers of the tests of the epoll engine: a body on it, and what its ring
 * knows of a descriptor.
 */
#ifndef WEFT_TESTS_SUPPORT_SOFT_KIT_H
#define WEFT_TESTS_SUPPORT_SOFT_KIT_H

#include "io/ring/soft/soft.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"

/* The body is the first task of a runtime on epoll, with one worker and two. */
#define SOFT_TEST(name)                                                     \
	static int64_t name##_task(void *arg);                              \
	START_TEST(name)                                                    \
	{                                                                   \
		struct weft_opts opts = WEFT_OPTS_INIT;                     \
                                                                            \
		opts.engine = WEFT_ENGINE_EPOLL;                            \
		opts.workers = 1 + (unsigned)_i;                            \
		ck_assert_int_eq(io_run_opts(name##_task, NULL, &opts), 0); \
	}                                                                   \
	END_TEST                                                            \
	static int64_t name##_task(__attribute__((unused)) void *arg)

/* Within that even a slow machine gets what has come. */
#define LONG_NS WEFT_SEC(20)

struct weft__ring *own_ring(void);

/* The events that the calling worker's ring has of the number. */
uint32_t watched(int fd);

void fill(int fd);

/* The rounds of all workers during 20 ms in which nothing comes. */
int64_t rounds_while_idle(void);

enum { IDLE_ROUNDS_MAX = 100 };

void put(int fd);

int64_t put_later(void *arg);

#endif

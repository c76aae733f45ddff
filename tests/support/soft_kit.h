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

static inline struct weft__ring *own_ring(void)
{
	return &weft__shard(weft__worker_self())->ring;
}

/* The events that the calling worker's ring has of the number. */
static inline uint32_t watched(int fd)
{
	struct weft__soft *soft = weft__soft(own_ring());
	struct weft__soft_watch *watch;
	uint32_t events;

	weft__lock_take(&soft->lock);
	watch = weft__soft_watch_find(&soft->watches, fd);
	events = watch ? watch->events : 0;
	weft__lock_drop(&soft->lock);
	return events;
}

static inline void fill(int fd)
{
	static const char bytes[4096];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* The worker's rounds during 20 ms in which nothing comes. */
static inline uint64_t rounds_while_idle(void)
{
	struct weft_stats before, after;

	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	EXPECT(weft_stats_get(weft_runtime_self(), &before) == 0);
	EXPECT(weft_sleep(WEFT_MS(20)) == 0);
	EXPECT(weft_stats_get(weft_runtime_self(), &after) == 0);
	return after.total.ticks - before.total.ticks;
}

static inline void put(int fd)
{
	EXPECT(send(fd, "x", 1, 0) == 1);
}

static inline int64_t put_later(void *arg)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	put(*(int *)arg);
	return 0;
}

#endif

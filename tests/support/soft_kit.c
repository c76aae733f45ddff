/* SPDX-License-Identifier: MIT */
#include "tests/support/soft_kit.h"

struct weft__ring *own_ring(void)
{
	return &weft__shard(weft__worker_self())->ring;
}

uint32_t watched(int fd)
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

void fill(int fd)
{
	static const char bytes[4096];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

int64_t rounds_while_idle(void)
{
	struct weft_stats before, after;
	weft_nsec start_ns;

	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	start_ns = weft_now();
	EXPECT(weft_stats_get(weft_runtime_self(), &before) == 0);
	EXPECT(weft_sleep(WEFT_MS(20)) == 0);
	EXPECT(weft_stats_get(weft_runtime_self(), &after) == 0);
	return (int64_t)((after.total.ticks - before.total.ticks) /
			 ((weft_now() - start_ns) / WEFT_MS(20)));
}

void put(int fd)
{
	EXPECT(send(fd, "x", 1, 0) == 1);
}

int64_t put_later(void *arg)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	put(*(int *)arg);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"

static void stats_read(struct weft__worker *worker, uint64_t *words)
{
	for (int i = 0; i < WEFT__COUNTS; i++) {
		/* relaxed: counters publish nothing. */
		uint64_t value = weft__load(&worker->counts[i], relaxed);

		if (i == WEFT__N_LONGEST_POLL_NS)
			words[i] = value > words[i] ? value : words[i];
		else
			words[i] += value;
	}
}

/* The number of stacks that tasks have, at some moment of the call.  The lock
 * keeps a stack that moves between a cache and the shared lists from being
 * missed or counted twice.
 * */
static uint64_t stacks_bound(struct weft_runtime *runtime)
{
	struct weft__stacks *stacks = &runtime->stacks;
	uint64_t free_count = 0, carved;

	weft__lock_take(&stacks->lock);
	carved = stacks->carved;
	for (unsigned i = 0; i < WEFT__STACK_CLASSES; i++)
		free_count += stacks->free_count[i];
	for (uint32_t i = 0; i < runtime->workers_count; i++)
		/* relaxed: a look. */
		free_count += weft__load(
			&runtime->workers[i]->caches.stacks.count, relaxed);
	weft__lock_drop(&stacks->lock);
	/* A cache may grow while it is read. */
	return carved > free_count ? carved - free_count : 0;
}

int weft_stats_get(struct weft_runtime *runtime, struct weft_stats *ret_stats)
{
	struct weft_stats stats = { 0 };
	uint64_t begun;

	if (!runtime || !ret_stats)
		return -EINVAL;
	stats.workers = runtime->workers_count;
	for (unsigned i = 0; i < runtime->workers_count; i++)
		stats_read(runtime->workers[i], (uint64_t *)&stats.total);
	/* relaxed: a look. */
	begun = stats.total.spawned +
		weft__load(&runtime->roots_begun, relaxed);
	if (begun > stats.total.ended)
		stats.tasks = (unsigned)(begun - stats.total.ended);
	stats.stacks = stacks_bound(runtime);
	*ret_stats = stats;
	return 0;
}

int weft_stats_worker(struct weft_runtime *runtime, unsigned worker,
		      struct weft_worker_stats *ret_stats)
{
	struct weft_worker_stats stats = { 0 };

	if (!runtime || !ret_stats || worker >= runtime->workers_count)
		return -EINVAL;
	stats_read(runtime->workers[worker], (uint64_t *)&stats);
	*ret_stats = stats;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "runtime/sched/stack_wait.h"

#include "runtime/sched/switch.h"

/* Requests for memory in one call: they may be for stacks of several sizes. */
enum { TRIES = 8 };

static void wake_others(struct weft__worker *worker)
{
	struct weft_runtime *runtime = worker->runtime;

	for (uint32_t i = 0; i < runtime->workers_count; i++)
		if (i != worker->index)
			weft__unpark(worker, runtime->workers[i]);
}

void weft__stack_wait_add(struct weft__worker *worker, struct weft__task *task)
{
	struct weft__stack_wait *wait = &worker->runtime->stack_wait;
	bool first;

	weft__lock_take(&wait->lock);
	first = wait->chain.count == 0;
	weft__chain_add(&wait->chain, task);
	/* relaxed: see weft__stack_wait_any. */
	weft__store(&wait->count, wait->chain.count, relaxed);
	weft__lock_drop(&wait->lock);
	if (first)
		wake_others(worker);
}

/* Takes the oldest task, if this worker has a stack or it is time to ask for
 * memory. */
static struct weft__task *stack_wait_take(struct weft__worker *worker,
				       uint64_t now_ns, bool *asks)
{
	struct weft__stack_wait *wait = &worker->runtime->stack_wait;
	struct weft__task *task = NULL;

	weft__lock_take(&wait->lock);
	if (!*asks && now_ns >= wait->retry_ns) {
		*asks = true;
		wait->retry_ns = now_ns + WEFT__STACK_WAIT_RETRY_NS;
	}
	if (*asks || worker->caches.stacks.free)
		task = weft__chain_take(&wait->chain);
	/* relaxed: see weft__stack_wait_any. */
	weft__store(&wait->count, wait->chain.count, relaxed);
	weft__lock_drop(&wait->lock);
	return task;
}

void weft__stack_wait_serve(struct weft__worker *worker, uint64_t now_ns)
{
	uint32_t room = weft__harvest_room(worker);
	struct weft__task *task;
	unsigned tries = 0;
	bool asks = false;

	while (room-- && tries < TRIES &&
	       (task = stack_wait_take(worker, now_ns, &asks)))
		if (weft__bind(worker, task)) /* else it waits again */
			weft__push(worker, task);
		else
			tries++;
}

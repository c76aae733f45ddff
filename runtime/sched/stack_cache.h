/* SPDX-License-Identifier: MIT */
/*
 * Stack cache - the stacks of the default size that a worker keeps, hottest
 * first.
 */
#ifndef WEFT_RUNTIME_SCHED_STACK_CACHE_H
#define WEFT_RUNTIME_SCHED_STACK_CACHE_H

#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"
#include "runtime/stack/fiber.h"

/* A stack for a task; NULL when there is no memory. */
static inline struct weft__stack *weft__stack_get(struct weft__worker *worker,
						  uint8_t size_class)
{
	struct weft__stack_cache *cache = &worker->caches.stacks;
	struct weft__stack *stack = cache->free;

	if (weft__unlikely(!stack ||
			   size_class != worker->runtime->stack_class))
		return weft__stack_fetch(&worker->runtime->stacks,
					 size_class);
	cache->free = stack->next;
	(void)weft__stack_cache_add(cache, -1u);
	weft__stack_prefetch(cache->free);
	return stack;
}

/* Takes back the stack of a task that has ended; no thread runs on it any
 * more. */
static inline void weft__stack_put(struct weft__worker *worker,
				   struct weft__stack *stack)
{
	struct weft__stack_cache *cache = &worker->caches.stacks;

	weft__fiber_stack_reuse(stack);
	if (weft__unlikely(stack->size_class != worker->runtime->stack_class)) {
		weft__stack_give_back(&worker->runtime->stacks, stack);
		return;
	}
	stack->next = cache->free;
	cache->free = stack;
	if (weft__unlikely(weft__stack_cache_add(cache, 1) >
			   WEFT__STACK_CACHE_MAX))
		weft__stack_cache_shrink(&worker->runtime->stacks, cache);
}

#endif

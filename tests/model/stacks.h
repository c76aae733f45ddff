/* SPDX-License-Identifier: MIT */
/*
 * Stacks of models: there are always enough, and no pool gets them back.
 */
#ifndef WEFT_TESTS_MODEL_STACKS_H
#define WEFT_TESTS_MODEL_STACKS_H

#include "runtime/sched/stack_wait.h"
#include "runtime/sched/worker.h"
#include "tests/model/kit.h"

void weft__stack_wait_add(struct weft__worker *worker, struct weft__task *task)
{
	(void)worker, (void)task;
	model_assert(false, "a stack was not to be had");
}

void weft__stack_wait_serve(struct weft__worker *worker, uint64_t now_ns)
{
	(void)worker, (void)now_ns;
}

void weft__stack_give_back(struct weft__stacks *of, struct weft__stack *stack)
{
	(void)of, (void)stack;
}

void weft__stack_cache_shrink(struct weft__stacks *of,
			      struct weft__stack_cache *cache)
{
	(void)of, (void)cache;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Context switch - from one stack to another on the thread of a worker, with
 * the sanitizers and Valgrind informed.
 */
#ifndef WEFT_RUNTIME_SCHED_CONTEXT_SWITCH_H
#define WEFT_RUNTIME_SCHED_CONTEXT_SWITCH_H

#include "runtime/sched/worker.h"
#include "runtime/stack/context.h"

/* from, to: the stacks, NULL for the worker's own. */
static inline struct weft__worker *
weft__context_switch(void **save_sp, void *load_sp, struct weft__stack *from,
		     struct weft__stack *to, struct weft__worker *worker)
{
	weft__fiber_leave(&worker->own, from, to);
	worker = weft__context_jump(save_sp, load_sp, worker);
	weft__fiber_arrive(&worker->own, from);
	return worker;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Starved - tasks whose turn came for the first time, and for which there was
 * no stack.  They wait, oldest first and on no queue, for a stack that is free,
 * or for memory: whoever begins a tick and has a stack takes one of them, and
 * every 5 ms somebody asks for memory once more.
 *
 * Free stacks lie in the caches of workers, too, where no other gets at them.
 * So the first who starves wakes those that sleep, and none sleeps while tasks
 * starve before its own stacks are used.
 *
 * Orderings
 *   `count` is stored before the workers are unparked, [park.token]: who sleeps
 *   then sees it in the tick that follows.
 */
#ifndef WEFT_RUNTIME_SCHED_STACK_WAIT_H
#define WEFT_RUNTIME_SCHED_STACK_WAIT_H

#include "runtime/base/lock.h"
#include "runtime/sched/inject.h"

struct weft_runtime;
struct weft__worker;

#define WEFT__STARVED_RETRY_NS 5000000u

struct weft__stack_wait {
	struct weft__lock lock WEFT__APART;
	struct weft__chain chain;     /* under lock */
	uint64_t retry_ns;	      /* under lock: when to ask for memory */
	weft__atomic(uint32_t) count; /* written under lock */
};

/* The task, which is on no queue, waits for a stack. */
void weft__stack_wait_add(struct weft__worker *worker, struct weft__task *task);

/* The start of a tick: makes ready those that there are stacks for. */
void weft__stack_wait_serve(struct weft__worker *worker, uint64_t now_ns);

/* From any worker; a hint. */
static inline bool weft__stack_wait_any(struct weft__stack_wait *wait)
{
	/* relaxed: who must not miss it was unparked after it was stored. */
	return weft__load(&wait->count, relaxed) != 0;
}

#endif

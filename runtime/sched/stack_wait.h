/* SPDX-License-Identifier: MIT */
/*
 * Stack wait - tasks whose turn came for the first time, and for which there
 * was no stack.  They wait, oldest first and on no queue, for a free stack, or
 * for memory: a worker that begins a tick makes ready as many as it has stacks
 * for, and every 5 ms one worker asks for memory again.
 *
 * Free stacks lie in the caches of workers, too, where no other worker can take
 * them.  So the first task that waits for a stack wakes the workers that sleep,
 * and while tasks wait for stacks no worker sleeps before its own stacks are
 * used.
 *
 * Orderings `count` is stored before the workers are unparked, [park.token]: a
 *   worker that slept sees it in the tick that follows.
 */
#ifndef WEFT_RUNTIME_SCHED_STACK_WAIT_H
#define WEFT_RUNTIME_SCHED_STACK_WAIT_H

#include "runtime/base/lock.h"
#include "runtime/sched/inject.h"

struct weft_runtime;
struct weft__worker;

#define WEFT__STACK_WAIT_RETRY_NS 5000000u

struct weft__stack_wait {
	struct weft__lock lock WEFT__APART;
	struct weft__chain chain;     /* under lock */
	uint64_t retry_ns;	      /* under lock: when to ask for memory */
	weft__atomic(uint32_t) count; /* written under lock */
};

/* The task, which is in no queue, waits for a stack. */
void weft__stack_wait_add(struct weft__worker *worker, struct weft__task *task);

/* Called at the start of a tick: makes tasks ready for which there are
 * stacks. */
void weft__stack_wait_serve(struct weft__worker *worker, uint64_t now_ns);

/* From any worker; a hint. */
static inline bool weft__stack_wait_any(struct weft__stack_wait *wait)
{
	/* relaxed: a worker that must not miss it was unparked after it was
	 * stored. */
	return weft__load(&wait->count, relaxed) != 0;
}

#endif

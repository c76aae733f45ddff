/* SPDX-License-Identifier: MIT */
/*
 * Fake fiber - a stack on which a worker's loop runs, in place of a thread.
 *
 * It runs until it pauses, in the middle of whatever it does, and goes on from
 * there when it is run again.  It is run from any other stack: that of the
 * thread, or that of a task of another worker.
 */
#ifndef WEFT_TESTS_FAKE_FAKE_FIBER_H
#define WEFT_TESTS_FAKE_FAKE_FIBER_H

#include <stdbool.h>

#include "runtime/stack/fiber.h"
#include "runtime/stack/stack.h"

struct fake_fiber {
	struct weft__stack *stack;
	void *sp;
	void *outer_sp; /* of the stack that it was run from, and that stack: */
	struct weft__stack *outer; /* NULL: the thread's */
	bool ends;
	void (*fn)(void *arg); /* never returns */
	void *arg;
};

/* fn(arg) begins when it is first run. */
void fake_fiber_begin(struct fake_fiber *fiber, void (*fn)(void *arg),
		      void *arg);

/* The record that a worker on it has of its thread. */
void fake_fiber_describe(const struct fake_fiber *fiber,
			 struct weft__fiber_thread *ret_own);

/* Runs it until it pauses.  from: the stack that runs now, NULL for the
 * thread's. */
void fake_fiber_run(struct fake_fiber *fiber, struct weft__stack *from);

/* On the fiber. */
void fake_fiber_pause(struct fake_fiber *fiber);

/* It has paused, and never goes on: its stack is free.  from: as above. */
void fake_fiber_end(struct fake_fiber *fiber, struct weft__stack *from);

#endif

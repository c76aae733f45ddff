/* SPDX-License-Identifier: MIT */
/*
 * Fake fiber: on weft's stacks, with its switch.  The stacks are kept for the
 * next run.
 */
#include "tests/fake/fake_fiber.h"

#include <string.h>

#include "runtime/stack/context.h"

#define STACK_BYTES ((size_t)256 << 10)

static struct weft__stacks stacks;
static struct weft__fiber_thread thread;
static struct fake_fiber *begun;

static struct weft__stack *stack_new(void)
{
	static bool is_open;
	uint8_t size_class = weft__stack_class(STACK_BYTES);
	struct weft__stack *stack;

	weft__fiber_thread_init(&thread);
	if (!is_open)
		is_open = weft__stacks_init(&stacks, size_class) == 0;
	stack = is_open ? weft__stack_fetch(&stacks, size_class) : NULL;
	weft__assert(stack, "no memory for a fake thread");
	weft__fiber_stack_reuse(stack);
	return stack;
}

/* It came here by a jump. */
static void enter(void)
{
	struct fake_fiber *fiber = begun;

	weft__fiber_arrive(&thread, fiber->stack);
	fiber->fn(fiber->arg);
	weft__assert(false, "a fake thread returned");
}

void fake_fiber_begin(struct fake_fiber *fiber, void (*fn)(void *arg),
		      void *arg)
{
	uint64_t *sp;

	fiber->stack = stack_new();
	fiber->fn = fn;
	fiber->arg = arg;
	sp = weft__context_prepare(fiber->stack, weft__context_control());
#if defined(__x86_64__)
	/* A function begins below the address that it returns to. */
	memmove(sp - 1, sp, WEFT__CONTEXT_WORDS * sizeof(*sp));
	sp--;
	sp[WEFT__CONTEXT_WORDS] = 0;
#endif
	sp[WEFT__CONTEXT_PC] = (uintptr_t)enter;
	fiber->sp = sp;
}

void fake_fiber_describe(const struct fake_fiber *fiber,
			 struct weft__fiber_thread *ret_own)
{
	struct weft__stack *stack = fiber->stack;

	*ret_own = (struct weft__fiber_thread){
		.fiber = stack->tsan_fiber,
		.low = stack->low,
		.bytes = (size_t)((char *)stack - stack->low),
	};
}

void fake_fiber_run(struct fake_fiber *fiber, struct weft__stack *from)
{
	fiber->outer = from;
	begun = fiber;
	weft__fiber_leave(&thread, from, fiber->stack);
	(void)weft__context_jump(&fiber->outer_sp, fiber->sp, NULL);
	weft__fiber_arrive(&thread, from);
}

void fake_fiber_pause(struct fake_fiber *fiber)
{
	weft__fiber_leave(&thread, fiber->stack, fiber->outer);
	(void)weft__context_jump(&fiber->sp, fiber->outer_sp, NULL);
	weft__fiber_arrive(&thread, fiber->stack);
	if (!fiber->ends)
		return;
	weft__fiber_last_leave(&thread, fiber->stack, fiber->outer);
	weft__context_leave(fiber->outer_sp, NULL);
}

void fake_fiber_end(struct fake_fiber *fiber, struct weft__stack *from)
{
	fiber->ends = true;
	fake_fiber_run(fiber, from);
	weft__stack_give_back(&stacks, fiber->stack);
	fiber->stack = NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Fiber - what AddressSanitizer, ThreadSanitizer and Valgrind are informed of:
 * that a stack is mapped, used again or unmapped, and each switch to it.
 *
 * TSan has one fiber for each stack and one for each worker's thread.  ASan has
 * the bounds of both stacks, and keeps a fake stack for the one that is left.
 * Valgrind has the bounds of each stack that is mapped.  Without these tools
 * the functions are empty.
 */
#include "runtime/stack/fiber.h"

#include <pthread.h>

#include "runtime/stack/stack.h"

#ifdef WEFT__ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WEFT__TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifdef WEFT_VALGRIND
#include <valgrind/valgrind.h>
#endif

/* The bytes from the lowest usable one to the header. */
__attribute__((unused)) static size_t
fiber_bytes(const struct weft__stack *stack)
{
	return (size_t)((const char *)stack - stack->low);
}

void weft__fiber_stack_new(struct weft__stack *stack)
{
	(void)stack;
#ifdef WEFT__TSAN
	stack->tsan_fiber = __tsan_create_fiber(0);
#endif
#ifdef WEFT_VALGRIND
	stack->valgrind_id = VALGRIND_STACK_REGISTER(stack->low, stack);
#endif
}

void weft__fiber_stack_free(struct weft__stack *stack)
{
	(void)stack;
#ifdef WEFT__TSAN
	__tsan_destroy_fiber(stack->tsan_fiber);
#endif
#ifdef WEFT__ASAN
	__asan_unpoison_memory_region(stack->low, fiber_bytes(stack));
#endif
#ifdef WEFT_VALGRIND
	VALGRIND_STACK_DEREGISTER(stack->valgrind_id);
#endif
}

void weft__fiber_thread_init(struct weft__fiber_thread *thread)
{
	(void)thread;
#ifdef WEFT__TSAN
	thread->fiber = __tsan_get_current_fiber();
#endif
#ifdef WEFT__ASAN
	pthread_attr_t attr;
	void *low;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	if (pthread_attr_getstack(&attr, &low, &thread->bytes) == 0)
		thread->low = low;
	pthread_attr_destroy(&attr);
#endif
}

#if defined(WEFT__ASAN) || defined(WEFT__TSAN)

/* A task never returns from its bottom frames: the record of its calls ends
 * with the fiber. */
void weft__fiber_stack_reuse(struct weft__stack *stack)
{
#ifdef WEFT__TSAN
	__tsan_destroy_fiber(stack->tsan_fiber);
	stack->tsan_fiber = __tsan_create_fiber(0);
#else
	stack->asan_fake = NULL;
	__asan_unpoison_memory_region(stack->low, fiber_bytes(stack));
#endif
}

#endif

#ifdef WEFT__TSAN
void *weft__fiber_of(struct weft__fiber_thread *thread,
		     struct weft__stack *stack)
{
	return stack ? stack->tsan_fiber : thread->fiber;
}
#endif

#ifdef WEFT__ASAN

/* The order is the sanitizer's: start before the switch, finish after it. */
static void fiber_start(struct weft__fiber_thread *thread, void **fake,
			struct weft__stack *to)
{
	__sanitizer_start_switch_fiber(fake,
				       to ? to->low : thread->low,
				       to ? fiber_bytes(to) :
					    thread->bytes);
}

void weft__fiber_leave(struct weft__fiber_thread *thread,
		       struct weft__stack *from, struct weft__stack *to)
{
	fiber_start(thread, from ? &from->asan_fake : &thread->fake, to);
}

void weft__fiber_last_leave(struct weft__fiber_thread *thread,
			    struct weft__stack *from, struct weft__stack *to)
{
	(void)from;
	/* NULL for the fake stack's place: ASan frees the fake stack. */
	fiber_start(thread, NULL, to);
}

void weft__fiber_arrive(struct weft__fiber_thread *thread,
			struct weft__stack *at)
{
	__sanitizer_finish_switch_fiber(at ? at->asan_fake :
					     thread->fake,
					NULL, NULL);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Fiber - informs the sanitizers and Valgrind of switches between stacks.  Does
 * nothing in an ordinary build.
 */
#ifndef WEFT_RUNTIME_STACK_FIBER_H
#define WEFT_RUNTIME_STACK_FIBER_H

#include <stddef.h>

struct weft__stack;

/* The record of the tools about the stack of a worker's own thread. */
struct weft__fiber_thread {
	void *fiber;	 /* TSan's record of it */
	void *fake;	 /* ASan's fake stack while a task runs */
	const void *low; /* its lowest byte */
	size_t bytes;
};

#if defined(__SANITIZE_ADDRESS__)
#define WEFT__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT__ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define WEFT__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT__TSAN 1
#endif
#endif

/* A stack was mapped; a stack goes away; a worker's thread begins to run on its
 * own stack.  Below: a stack is used for a new task; a switch leaves a stack,
 * or leaves it for good; a switch arrives. */
void weft__fiber_stack_new(struct weft__stack *stack);
void weft__fiber_stack_free(struct weft__stack *stack);
void weft__fiber_thread_init(struct weft__fiber_thread *thread);

#if defined(WEFT__ASAN)
void weft__fiber_stack_reuse(struct weft__stack *stack);
void weft__fiber_leave(struct weft__fiber_thread *thread,
		       struct weft__stack *from, struct weft__stack *to);
void weft__fiber_last_leave(struct weft__fiber_thread *thread,
			    struct weft__stack *from, struct weft__stack *to);
void weft__fiber_arrive(struct weft__fiber_thread *thread,
			struct weft__stack *at);
#elif defined(WEFT__TSAN)
void weft__fiber_stack_reuse(struct weft__stack *stack);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void *weft__fiber_of(struct weft__fiber_thread *thread,
		     struct weft__stack *stack);

/* In line: a function that returned after the switch would be taken off the
 * other fiber's record of calls. */
static inline __attribute__((always_inline)) void
weft__fiber_leave(struct weft__fiber_thread *thread, struct weft__stack *from,
		  struct weft__stack *to)
{
	(void)from;
	__tsan_switch_to_fiber(weft__fiber_of(thread, to), 0);
}
static inline __attribute__((always_inline)) void
weft__fiber_last_leave(struct weft__fiber_thread *thread,
		       struct weft__stack *from, struct weft__stack *to)
{
	(void)from;
	__tsan_switch_to_fiber(weft__fiber_of(thread, to), 0);
}
static inline void weft__fiber_arrive(struct weft__fiber_thread *thread,
				      struct weft__stack *at)
{
	(void)thread, (void)at;
}
#else
static inline void weft__fiber_stack_reuse(struct weft__stack *stack)
{
	(void)stack;
}
static inline void weft__fiber_leave(struct weft__fiber_thread *thread,
				     struct weft__stack *from,
				     struct weft__stack *to)
{
	(void)thread, (void)from, (void)to;
}
static inline void weft__fiber_last_leave(struct weft__fiber_thread *thread,
					  struct weft__stack *from,
					  struct weft__stack *to)
{
	(void)thread, (void)from, (void)to;
}
static inline void weft__fiber_arrive(struct weft__fiber_thread *thread,
				      struct weft__stack *at)
{
	(void)thread, (void)at;
}
#endif

#endif

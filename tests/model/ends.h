/* SPDX-License-Identifier: MIT */
/*
 * Ends - runtime/runtime.c for models in which a runtime ends.  Its threads end
 * when the model's threads end, and memory is not freed.  A model includes this
 * file last, with TASKS_DRAIN defined.
 */
#ifndef WEFT_TESTS_MODEL_ENDS_H
#define WEFT_TESTS_MODEL_ENDS_H

#include "tests/model/tasks.h"

#define pthread_join(thread, ret) ((void)(thread))
#define weft__memory_free(from, memory, bytes) \
	((void)(from), (void)(memory), (void)(bytes))
#define weft__memory_apart_free weft__memory_free
#include "runtime/runtime.c"
#include "runtime/runtime_new.c"
#undef weft__memory_apart_free
#undef weft__memory_free
#undef pthread_join

/*
 * Stand-ins for the rest of what runtime/runtime.c calls.
 */

int weft__loop_begin(struct weft_runtime *of)
{
	(void)of;
	return 0;
}

int weft__loop_end(struct weft_runtime *of)
{
	(void)of;
	return 0;
}

void weft__overflow_report_fini(void)
{
}

void weft__overflow_report_init(weft__overflow_name_fn *name)
{
	(void)name;
}

int weft__stacks_init(struct weft__stacks *of, uint8_t size_class)
{
	(void)of, (void)size_class;
	return 0;
}

void weft__stacks_fini(struct weft__stacks *of)
{
	(void)of;
}

void weft__blocking_end(struct weft_runtime *of)
{
	(void)of;
}

int weft__watchdog_start(struct weft_runtime *of, const struct weft_opts *opts)
{
	(void)of, (void)opts;
	return 0;
}

void weft__watchdog_stop(struct weft_runtime *of, uint64_t by_ns)
{
	(void)of, (void)by_ns;
}

void weft__blocking_name_survivors(struct weft_runtime *of)
{
	(void)of;
}

void weft__idle_init(struct weft__idle *idle, uint32_t workers)
{
	(void)idle, (void)workers;
}

void *weft__overflow_thread_init(void)
{
	return NULL;
}

void weft__overflow_thread_fini(void *altstack)
{
	(void)altstack;
}

void weft__fiber_thread_init(struct weft__fiber_thread *thread)
{
	(void)thread;
}

#endif

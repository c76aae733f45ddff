/* SPDX-License-Identifier: MIT */
/*
 * Overflow - names the task whose stack has overflowed.
 *
 * A handler for SIGSEGV and SIGBUS runs on a stack of its own.  An address in a
 * guard is an overflow: the handler reports it, and the signal ends the
 * process.  For anything else the handler does what the program's action of the
 * signal would do.
 */
#ifndef WEFT_RUNTIME_STACK_OVERFLOW_H
#define WEFT_RUNTIME_STACK_OVERFLOW_H

#include <stdint.h>

struct weft__stack_slab;
struct weft__task;

/* The name of a task in the report.  The function is called by the signal
 * handler. */
struct weft__overflow_name {
	const char *label;
	uint64_t id;
};

typedef struct weft__overflow_name weft__overflow_name_fn(
	struct weft__task *task);

/* From the first init to the last fini the handler is in force. */
void weft__overflow_report_init(weft__overflow_name_fn *name);
void weft__overflow_report_fini(void);

/* In a child after fork(): gives the signals' actions back, and forgets the
 * slabs. */
void weft__overflow_forget(void);

/* Adds a slab to those that the handler knows, or removes it. */
void weft__overflow_report_add(struct weft__stack_slab *slab);
void weft__overflow_report_remove(struct weft__stack_slab *slab);

/* Gives the calling thread a stack for the handler, if it has none.  Returns
 * the argument for weft__overflow_thread_fini() at the thread's end, or
 * NULL. */
void *weft__overflow_thread_init(void);
void weft__overflow_thread_fini(void *altstack);

#endif

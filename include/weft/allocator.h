/* SPDX-License-Identifier: MIT */
/*
 * Allocation: functions of the program, from which a runtime takes the memory
 * for its records and buffers; see weft_opts.  Without them it uses malloc().
 *
 *	static const struct weft_allocator counted = {
 *		.alloc = counted_alloc,
 *		.dealloc = counted_dealloc,
 *	};
 *	opts.allocator = &counted;
 *
 * The functions are called on any thread that runs tasks or calls of weft, on
 * several at the same time; memory may be given back on another thread than the
 * one that took it.  A call may be made on the stack of a task, of which it
 * should use at most 4 KiB, and while weft holds a lock.  So the functions do
 * not call weft, and do not wait for anything that needs a task to run; they
 * may take a lock of their own.  They are never called in a handler of a
 * signal.
 *
 * All memory is given back before weft_run() or weft_stop() returns, and if
 * weft_start() or weft_run() fails, before that.  Not given back is the memory
 * of a runtime that abandoned tasks (-ETIMEDOUT), and what a stream that was
 * not closed receives into.  May be given back later: a oneshot that a task
 * made, by the call that frees it; and the text of a weft_dump() that another
 * thread still writes, by that call.
 *
 * Not taken from here are: the stacks of tasks and of signal handlers, and the
 * rings that the kernel shares (all mapped); one table of 4 MiB of address
 * space, of which a page is used; what the C library, its threads, liburing
 * and libdw allocate for themselves; a oneshot that is made outside of tasks,
 * which is from malloc().
 */
#ifndef WEFT_ALLOCATOR_H
#define WEFT_ALLOCATOR_H

#include <stddef.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* weft_run() and weft_start() copy the struct; what arg points to must exist
 * until the last memory was given back.  Both functions are needed. */
struct weft_allocator {
	/* Returns `bytes` of memory, whatever is in it, at a multiple of
	 * `align`; or NULL, and then the call of weft that needs it returns
	 * -ENOMEM, or does without.  bytes is not 0; align is a power of two,
	 * at most 128. */
	void *(*alloc)(size_t bytes, size_t align, void *arg);
	/* Takes back what alloc(bytes, align) returned.  memory is not
	 * NULL. */
	void (*dealloc)(void *memory, size_t bytes, size_t align, void *arg);
	void *arg; /* passed to both */
};

WEFT_END_DECLS

#endif

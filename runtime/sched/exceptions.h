/* SPDX-License-Identifier: MIT */
/*
 * Exceptions - of C++, kept for each task.
 *
 * The C++ library keeps the exceptions that are caught, and counts those that
 * are thrown and not yet caught, for each thread.  Their place is part of its
 * ABI (Itanium C++ ABI: Exception Handling, 2.2.2).  A task that is left while
 * it has some takes them with it, onto its stack, to the thread on which it
 * goes on.
 *
 *   EXC1  Between two tasks, and while the scheduler runs, the worker's thread
 *       has no exceptions.  So a task that has none, as in most switches, has
 *       nothing to save; and no task has to look for others when it goes on.
 *
 * Rejected: to save at every switch; a look takes fewer instructions.  In a
 * program without the C++ library the look is at a NULL pointer.
 */
#ifndef WEFT_RUNTIME_SCHED_EXCEPTIONS_H
#define WEFT_RUNTIME_SCHED_EXCEPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/assert.h"
#include "runtime/sched/worker.h"

/* The first words of the C++ library's struct __cxa_eh_globals. */
struct weft__exceptions {
	void *caught;	       /* the newest */
	unsigned thrown_count; /* not yet caught */
};

/* Of the C++ library, if the program has it. */
extern struct weft__exceptions *__cxa_get_globals(void) __attribute__((weak));

/* Those of the calling thread; NULL without the C++ library. */
static inline struct weft__exceptions *weft__exceptions_of_thread(void)
{
	return __cxa_get_globals ? __cxa_get_globals() : NULL;
}

static inline bool weft__exceptions_any(const struct weft__worker *worker)
{
	const struct weft__exceptions *here = worker->exceptions;

	return weft__unlikely(here != NULL) &&
	       weft__unlikely(here->caught || here->thrown_count);
}

/* Takes them from the thread of a worker, and gives them to one. */
static inline struct weft__exceptions
weft__exceptions_take(struct weft__worker *worker)
{
	const struct weft__exceptions none = { NULL, 0 };
	struct weft__exceptions taken = none;

	if (worker->exceptions) {
		taken = *worker->exceptions;
		*worker->exceptions = none;
	}
	return taken;
}

static inline void weft__exceptions_give(struct weft__worker *worker,
					 struct weft__exceptions taken)
{
	if (worker->exceptions)
		*worker->exceptions = taken;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Cycles - finds cycles of tasks, each of which waits for the next one.
 *
 * A task waits for one other task (the owner of a mutex, a task that it joins),
 * or for all tasks of a scope whose end it waits for.  The latter is combined
 * from both ends, since neither task's record names the other:
 *
 *	{ owner, 0, scope }	the owner waits for the scope to end
 *	{ owner, task, scope }	that task is in the scope of that owner
 *	{ task, other, 0 }	the task waits for the other one
 */
#ifndef WEFT_RUNTIME_DUMP_CYCLES_H
#define WEFT_RUNTIME_DUMP_CYCLES_H

#include <stddef.h>
#include <stdint.h>

struct weft__edge {
	uint64_t from; /* a task's id */
	uint64_t to;
	uint64_t through;
};

/* Called for each cycle with its tasks: each waits for the next, and the last
 * for the first. */
typedef void weft__cycle_fn(void *arg, const uint64_t *ids, size_t count);

struct weft_allocator;

/* Reports cycles that have no task in common, and at least one within any set
 * of tasks that all wait for each other.  Sorts the edges, and drops some.
 * memory: see runtime/base/memory.h.  0 or -ENOMEM. */
int weft__cycles_find(struct weft__edge *edges, size_t count,
		      const struct weft_allocator *memory,
		      weft__cycle_fn *tell, void *arg);

#endif

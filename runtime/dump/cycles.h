/* SPDX-License-Identifier: MIT */
/*
 * Cycles - among tasks of which each waits for the next one.
 *
 * A task waits for one other (who holds a mutex, who is joined), or for all
 * that are in a scope whose end it waits for.  The latter is put together from
 * both ends, for neither task knows of the other:
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

/* Told of the tasks of a cycle, each of which waits for the next, and the last
 * for the first. */
typedef void weft__cycle_fn(void *arg, const uint64_t *ids, size_t count);

/* Tells of cycles that have no task in common, and of one at least that is
 * within any set of tasks that all wait for each other.  The edges are sorted,
 * and some are dropped.  0 or -ENOMEM. */
int weft__cycles_find(struct weft__edge *edges, size_t count,
		      weft__cycle_fn *tell, void *arg);

#endif

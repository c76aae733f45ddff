/* SPDX-License-Identifier: MIT */
/*
 * Groups - tasks that run the same function and wait for the same kind of thing
 * in the same calls: thousands of them are reported as one group.
 */
#ifndef WEFT_RUNTIME_DUMP_GROUPS_H
#define WEFT_RUNTIME_DUMP_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dump/trace.h"

/* At most this number of a group's tasks get lines of their own.  After that
 * number of groups by calls, tasks are grouped without their calls. */
enum { WEFT__GROUP_LINES = 10, WEFT__GROUPS_MAX = 4096 };

struct weft__group {
	uint64_t what; /* the tasks do, as defined by the caller */
	uint64_t fn;
	uint64_t tasks;
	unsigned lines_count;
	char *lines[WEFT__GROUP_LINES]; /* of the first tasks */
	bool cut;			/* see trace.h */
	uint32_t pcs_count;
	uint64_t pcs[];
};

struct weft_allocator;

struct weft__groups {
	const struct weft_allocator *memory; /* see runtime/base/memory.h */
	struct weft__group **all; /* in order of arrival */
	size_t count;
	size_t room;	 /* for groups; there are twice as many slots */
	size_t all_room; /* of `all`; more than `room` if that failed to grow */
	uint32_t *slots; /* by a hash: place in `all` + 1, or 0 */
};

/* Adds a task to its group and returns that; NULL: no memory. */
struct weft__group *weft__groups_add(struct weft__groups *groups,
				     uint64_t what, uint64_t fn,
				     const struct weft__trace *trace);

/* Keeps a copy of the line, if there is memory. */
void weft__group_report(struct weft__groups *groups, struct weft__group *group,
			const char *line);

void weft__groups_fini(struct weft__groups *groups);

#endif

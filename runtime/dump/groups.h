/* SPDX-License-Identifier: MIT */
/*
 * Groups - tasks that run the same function, wait for the same kind of thing,
 * and do so in the same calls: thousands of them are told of as one.
 */
#ifndef WEFT_RUNTIME_DUMP_GROUPS_H
#define WEFT_RUNTIME_DUMP_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dump/trace.h"

/* Tasks of a group that are told of one by one; and groups by their calls: of
 * what comes after those the calls are left out. */
enum { WEFT__GROUP_LINES = 10, WEFT__GROUPS_MAX = 4096 };

struct weft__group {
	uint64_t what; /* they do; the caller's */
	uint64_t fn;
	uint64_t tasks;
	unsigned lines_count;
	char *lines[WEFT__GROUP_LINES]; /* of the first */
	bool cut;			/* see trace.h */
	uint32_t pcs_count;
	uint64_t pcs[];
};

struct weft__groups {
	struct weft__group **all; /* as they came */
	size_t count;
	size_t room;	 /* of all; the slots are twice as many */
	uint32_t *slots; /* by a hash: place in `all` + 1, or 0 */
};

/* The group, with one task more; NULL: there is no memory. */
struct weft__group *weft__groups_add(struct weft__groups *groups,
				     uint64_t what, uint64_t fn,
				     const struct weft__trace *trace);

/* Keeps a copy of the line, if there is memory. */
void weft__group_tell(struct weft__group *group, const char *line);

void weft__groups_fini(struct weft__groups *groups);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Collection - a look at every task of a runtime, one after the other, while
 * they go on.
 *
 * First come the workers and the tasks that they run, then all records.  A task
 * that waits is held, copied, released, and then unwound: so each is delayed
 * for some microseconds only.  A ready task is copied as it is, and copied
 * again if it has run meanwhile, a limited number of times.  Findings about
 * several tasks need not have been true at one time.
 */
#ifndef WEFT_RUNTIME_DUMP_COLLECT_H
#define WEFT_RUNTIME_DUMP_COLLECT_H

#include "runtime/dump/cycles.h"
#include "runtime/dump/format.h"
#include "runtime/dump/groups.h"
#include "runtime/dump/optimistic_read.h"
#include "runtime/dump/snapshot.h"

/* A worker, as the collection found it. */
struct weft__worker_info {
	struct weft__sample seen;
	uint64_t since_ns;
	struct weft__trace trace;
};

struct weft__collection {
	struct weft__format_context speaker;
	const struct weft_allocator *memory; /* the runtime's */
	struct weft__worker_info *workers;
	struct weft__snapshot *snapshot;
	struct weft__optimistic_read still;
	struct weft__trace trace;
	struct weft__groups groups;
	uint64_t runs, waits, ready, unbegun; /* tasks */
	uint64_t runs_before; /* of all tasks, when it began */
	uint64_t hopeful; /* tasks that wait, but not for another task */
	struct weft__edge *edges;
	size_t edges_count, edges_room;
	bool incomplete; /* there was no memory for something */
};

/* How many runs the workers have counted. */
uint64_t weft__collect_runs(struct weft_runtime *runtime);

/* 0 or -ENOMEM; call fini in either case. */
int weft__collect_take(struct weft__collection *collection,
		      struct weft_runtime *runtime,
		      struct weft__unwinder *unwinder);

/* The same for one worker and the task that it runs, if it has counted this
 * number of polls: then that task has run since.  The task is described as the
 * look found it, since it may end at any moment. */
int weft__collect_take_worker(struct weft__collection *collection,
			     struct weft_runtime *runtime, uint32_t worker,
			     uint64_t polls, struct weft__unwinder *unwinder);
void weft__collect_fini(struct weft__collection *collection);

/* Looks at one task again; false: it does not wait. */
bool weft__collect_waits(struct weft_runtime *runtime, uint64_t id,
			struct weft__task_info *ret_info);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Trace - a task's calls, from the weft call that it is in to its function;
 * without the frames below that function, and those inside that call.
 */
#ifndef WEFT_RUNTIME_DUMP_TRACE_H
#define WEFT_RUNTIME_DUMP_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/dump/unwind.h"

struct weft__snapshot;

enum { WEFT__TRACE_MAX = 64 };

struct weft__trace {
	uint32_t count;
	bool cut; /* there are more */
	uint64_t pc[WEFT__TRACE_MAX];
};

/* `fn` is the task's function.  Without an unwinder the trace is empty. */
void weft__trace_take(struct weft__unwinder *unwinder,
		      const struct weft__snapshot *snapshot, uint64_t fn,
		      struct weft__trace *ret_trace);

#endif

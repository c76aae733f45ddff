/* SPDX-License-Identifier: MIT */
/*
 * Visit - a thread's call that looks at a runtime after a task of it has ended
 * or was let go, which may be its last: its memory stays until the call is
 * over.
 */
#ifndef WEFT_RUNTIME_SCHED_RUNTIME_REF_H
#define WEFT_RUNTIME_SCHED_RUNTIME_REF_H

#include "runtime/base/futex.h"
#include "runtime/sched/runtime.h"

/* While the runtime cannot end. */
static inline void weft__visit_begin(struct weft_runtime *runtime)
{
	/* relaxed: whoever ends the runtime knows of the call. */
	weft__add(&runtime->visitors, 1u, relaxed);
}

static inline void weft__visit_end(struct weft_runtime *runtime)
{
	/* pairs: [runtime.visit] */
	if (weft__sub(&runtime->visitors, 1u, release) ==
	    (1u | WEFT__VISITORS_AWAITED))
		/* By its address alone: the runtime may be gone. */
		weft__futex_wake(&runtime->visitors,
				 INT32_MAX); /* mutate: wake */
}

#endif

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
static inline void weft__runtime_ref(struct weft_runtime *runtime)
{
	/* relaxed: whoever ends the runtime knows of the call. */
	weft__add(&runtime->refs, 1u, relaxed);
}

static inline void weft__runtime_unref(struct weft_runtime *runtime)
{
	/* pairs: [runtime.ref] */
	if (weft__sub(&runtime->refs, 1u, release) ==
	    (1u | WEFT__REFS_AWAITED))
		/* By its address alone: the runtime may be gone. */
		weft__futex_wake(&runtime->refs,
				 INT32_MAX); /* mutate: wake */
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Runtime reference - taken by a thread's call that reads a runtime after one
 * of its tasks has ended or was granted a wait.  That task may be the runtime's
 * last; the reference keeps the runtime's memory until the call is over.
 */
#ifndef WEFT_RUNTIME_SCHED_RUNTIME_REF_H
#define WEFT_RUNTIME_SCHED_RUNTIME_REF_H

#include "runtime/base/futex.h"
#include "runtime/sched/runtime.h"

/* Called while the runtime cannot end. */
static inline void weft__runtime_ref(struct weft_runtime *runtime)
{
	/* relaxed: the thread that ends the runtime knows of the call. */
	weft__add(&runtime->refs, 1u, relaxed);
}

static inline void weft__runtime_unref(struct weft_runtime *runtime)
{
	/* pairs: [runtime.ref] */
	if (weft__sub(&runtime->refs, 1u, release) ==
	    (1u | WEFT__REFS_AWAITED))
		/* Uses the word's address alone: the runtime may be gone. */
		weft__futex_wake(&runtime->refs,
				 INT32_MAX); /* mutate: wake */
}

#endif

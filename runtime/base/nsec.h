/* SPDX-License-Identifier: MIT */
/*
 * Nsec - the times that callers pass, by the rule of <weft/time.h>: they are
 * signed, and WEFT_NEVER or more never comes.  All results here are in 0 to
 * WEFT_NEVER, so the rest of the library compares them as they are.
 */
#ifndef WEFT_RUNTIME_BASE_NSEC_H
#define WEFT_RUNTIME_BASE_NSEC_H

#include <stdint.h>

#include <weft/time.h>

#include "runtime/base/assert.h"

static inline uint64_t weft__nsec_point(weft_nsec point_ns)
{
	/* Almost every point is between them: one branch, foreseen, which the
	 * work on the point does not wait for. */
	if (weft__unlikely(point_ns >= WEFT_NEVER))
		return (int64_t)point_ns < 0 ? 0 : WEFT_NEVER;
	return point_ns;
}

static inline uint64_t weft__nsec_after(uint64_t now_ns, weft_nsec length_ns)
{
	if (weft__unlikely((int64_t)length_ns <= 0))
		return now_ns;
	/* The sum of two numbers below 2^63. */
	length_ns += now_ns;
	return weft__likely(length_ns < WEFT_NEVER) ? length_ns : WEFT_NEVER;
}

#endif

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

static inline uint64_t weft__nsec_point(weft_nsec point_ns)
{
	if ((int64_t)point_ns < 0)
		return 0;
	return point_ns < WEFT_NEVER ? point_ns : WEFT_NEVER;
}

static inline uint64_t weft__nsec_after(uint64_t now_ns, weft_nsec length_ns)
{
	if ((int64_t)length_ns <= 0)
		return now_ns;
	/* The sum of two numbers below 2^63. */
	length_ns += now_ns;
	return length_ns < WEFT_NEVER ? length_ns : WEFT_NEVER;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * An allowance: how often a client may do something.  A number of times may
 * come together; in the long run, there is a number for each second.
 */
#ifndef H2D_ALLOWANCE_H
#define H2D_ALLOWANCE_H

#include <stdbool.h>
#include <weft/weft.h>

/* Start with all bytes zero. */
struct allowance {
	weft_nsec used_until_ns; /* if each use took its share of a second */
};

struct allowance_limit {
	unsigned together;
	unsigned per_second;
};

/* Uses it once.  Returns false if that is more than the limit allows. */
static inline bool allowance_use(struct allowance *allowance,
				 const struct allowance_limit *limit)
{
	weft_nsec share_ns = WEFT_SEC(1) / limit->per_second;
	weft_nsec now_ns = weft_now();

	if (allowance->used_until_ns < now_ns)
		allowance->used_until_ns = now_ns;
	allowance->used_until_ns += share_ns;
	return allowance->used_until_ns - now_ns <= limit->together * share_ns;
}

#endif

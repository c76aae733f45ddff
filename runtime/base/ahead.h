/* SPDX-License-Identifier: MIT */
/*
 * Ahead - for lists that are linked through the objects themselves, each of
 * which is a cache miss away from the one before.
 *
 * Each object names one that is some links further on, or was; whoever walks
 * the list has that fetched.  The name is never followed: a stale one costs a
 * needless fetch, and so nobody has to keep it right.
 */
#ifndef WEFT_RUNTIME_BASE_AHEAD_H
#define WEFT_RUNTIME_BASE_AHEAD_H

#include <stdint.h>

/* How many links: a miss takes as long as about that many steps. */
#define WEFT__AHEAD 8

/* The last that were put at the head of a list, or of several. */
struct weft__recent {
	void *objects[WEFT__AHEAD];
	uint32_t turn;
};

/* Notes one that is put there now.  Returns its name for the one that is ahead
 * of it. */
static inline void *weft__recent_put(struct weft__recent *recent, void *object)
{
	void **oldest = &recent->objects[recent->turn++ % WEFT__AHEAD];
	void *ahead = *oldest;

	*oldest = object;
	return ahead;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Ahead - fetches ahead along lists that are linked through the objects
 * themselves, where each object is one cache miss away from the one before.
 *
 * Each object names an object that is some links further on, or was; code that
 * walks the list prefetches the named one.  The name is never followed: a stale
 * name costs a needless fetch, so no code has to keep it right.
 */
#ifndef WEFT_RUNTIME_BASE_AHEAD_H
#define WEFT_RUNTIME_BASE_AHEAD_H

#include <stdint.h>

/* The number of links: a miss takes as long as about that many steps. */
#define WEFT__AHEAD 8

/* The objects put last at the head of one list, or of several. */
struct weft__recent {
	void *objects[WEFT__AHEAD];
	uint32_t turn;
};

/* Notes an object that is put there now.  Returns the name of the object that
 * is ahead of it. */
static inline void *weft__recent_put(struct weft__recent *recent, void *object)
{
	void **oldest = &recent->objects[recent->turn++ % WEFT__AHEAD];
	void *ahead = *oldest;

	*oldest = object;
	return ahead;
}

#endif

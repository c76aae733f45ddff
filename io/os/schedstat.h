/* SPDX-License-Identifier: MIT */
/*
 * Schedstat - how long a worker's thread has waited for a processor.
 *
 * The descriptor is there from the start, so that there are as many at any
 * time; the worker puts its own thread's in its place.
 */
#ifndef WEFT_IO_OS_SCHEDSTAT_H
#define WEFT_IO_OS_SCHEDSTAT_H

#include <stdbool.h>
#include <stdint.h>

struct weft__schedstat {
	int fd;		    /* immutable; or -1: not to be told */
	bool seen;	    /* the worker has tried to make it its own */
	bool own;	    /* and has: */
	uint64_t waited_ns; /* what it said last */
};

void weft__schedstat_open(struct weft__schedstat *stat);
void weft__schedstat_close(struct weft__schedstat *stat);

/* From here on by the worker alone. */
void weft__schedstat_own(struct weft__schedstat *stat);

/* Since the thread began; where the kernel does not tell, always the same. */
uint64_t weft__schedstat_waited_ns(struct weft__schedstat *stat);

#endif

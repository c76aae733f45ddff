/* SPDX-License-Identifier: MIT */
/*
 * Schedstat - the time that a worker's thread has waited for a processor.
 *
 * The descriptor is opened at the start, so that the number of descriptors
 * never changes; the worker replaces it with its own thread's.
 */
#ifndef WEFT_IO_OS_SCHEDSTAT_H
#define WEFT_IO_OS_SCHEDSTAT_H

#include <stdbool.h>
#include <stdint.h>

struct weft__schedstat {
	int fd;		    /* immutable; or -1: not known */
	bool seen;	    /* the worker has tried to replace it */
	bool own;	    /* and has succeeded; then: */
	uint64_t waited_ns; /* the last value read */
};

void weft__schedstat_open(struct weft__schedstat *stat);
void weft__schedstat_close(struct weft__schedstat *stat);

/* From here on only the worker may call. */
void weft__schedstat_own(struct weft__schedstat *stat);

/* The wait since the thread began; always the same if the kernel does not
 * report it. */
uint64_t weft__schedstat_waited_ns(struct weft__schedstat *stat);

#endif

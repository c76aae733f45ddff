/* SPDX-License-Identifier: MIT */
/*
 * Staying - requests that may wait for long in a thread of the kernel: for the
 * other end of a FIFO, for a device or a server.  They are counted, so that the
 * ring has threads for others beside them.
 */
#ifndef WEFT_IO_REQUEST_STAYING_H
#define WEFT_IO_REQUEST_STAYING_H

#include "io/request/reactor.h"

/* Before such a request is submitted by this worker. */
static inline void weft__staying_begin(struct weft__worker *worker)
{
	struct weft__reactor *reactor = weft__reactor(worker->runtime);
	/* relaxed: a count.  A ring has those that it was asked to carry when
	 * it last had a new one. */
	uint32_t count = weft__add(&reactor->staying, 1u, relaxed) + 1;

	weft__ring_allow(&weft__shard(worker)->ring, count);
}

/* After it has ended. */
static inline void weft__staying_end(struct weft__worker *worker)
{
	/* relaxed: a count. */
	weft__sub(&weft__reactor(worker->runtime)->staying, 1u, relaxed);
}

#endif

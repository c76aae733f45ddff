/* SPDX-License-Identifier: MIT */
/*
 * Upcalls - what requests call in the rooms above them.  Each comment names the
 * file that defines the function.
 */
#ifndef WEFT_IO_REQUEST_UPCALLS_H
#define WEFT_IO_REQUEST_UPCALLS_H

#include "io/request/reactor.h"

/* Makes ready what a batch completes; returns how many tasks.  io/driver.c */
unsigned weft__complete(struct weft__worker *worker,
			const struct weft__completion *batch, unsigned count);

/* Hands a completion to its stream, while the shard's lock is held.  Returns
 * the task to wake, or 0.  io/stream/stream_complete.c */
uint64_t weft__stream_complete(struct weft__worker *worker,
			       const struct weft__completion *completion);

#endif

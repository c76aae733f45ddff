/* SPDX-License-Identifier: MIT */
/*
 * Calls - the system call that each request of a soft ring is.
 */
#ifndef WEFT_IO_RING_SOFT_CALL_H
#define WEFT_IO_RING_SOFT_CALL_H

#include "io/ring/soft/soft.h"

/* The events that a request waits for: EPOLLIN, EPOLLOUT, those of a poll; 0:
 * it waits for none. */
uint32_t weft__soft_events(const struct weft__request *request);

/* Carries the request out without waiting.  Returns the result, or WAITS, or
 * BLOCKS. */
int32_t weft__soft_try(struct weft__soft_op *op);

/* Carries it out in a thread that may wait.  -EINTR: interrupted. */
int32_t weft__soft_call(struct weft__soft_op *op);

#endif

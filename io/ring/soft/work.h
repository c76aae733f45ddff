/* SPDX-License-Identifier: MIT */
/*
 * Work - requests of a soft ring that a thread of the blocking pool carries
 * out, in a lane of the runtime's.
 *
 * A request that is cancelled while its thread is in the call is interrupted
 * (io/os/interrupt.h); whoever cancels repeats it until the request has ended.
 */
#ifndef WEFT_IO_RING_SOFT_WORK_H
#define WEFT_IO_RING_SOFT_WORK_H

#include "io/ring/soft/soft.h"

/* Under the lock: makes the request POOLED.  It is queued by weft__soft_start()
 * once the lock was dropped.  False: no memory. */
bool weft__soft_pool(struct weft__soft *soft, struct weft__soft_op *op);

/* Queues a request, without the lock. */
void weft__soft_start(struct weft__soft *soft, struct weft__soft_work *work);

/* Under the lock: cancels such a request.  0, or -EALREADY. */
int weft__soft_work_cancel(struct weft__soft *soft, struct weft__soft_op *op);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Ops - the requests of a soft ring that are not done, by their user_data, and
 * the completions of those that are.  Everything is under the ring's lock.
 */
#ifndef WEFT_IO_RING_SOFT_OPS_H
#define WEFT_IO_RING_SOFT_OPS_H

#include "io/ring/soft/soft.h"

void weft__soft_ops_fini(struct weft__soft *soft);

/* A request that waits from now on, a copy of `op`.  NULL: no memory. */
struct weft__soft_op *weft__soft_op_new(struct weft__soft *soft,
					const struct weft__soft_op *op);

/* Frees a request that is in no list, without a completion. */
void weft__soft_op_drop(struct weft__soft *soft, struct weft__soft_op *op);

/* The request of that user_data which is not done; or NULL. */
struct weft__soft_op *weft__soft_op_find(struct weft__soft *soft,
					 uint64_t user_data);

/* Is there room for a completion?  The submitter's: see SOFT6. */
bool weft__soft_has_room(struct weft__soft *soft, bool submitter);

/* Posts a completion, for which there is room. */
void weft__soft_post(struct weft__soft *soft, uint64_t user_data,
		     int32_t result, uint32_t flags);

/* The request is done, and is freed.  It is in no list by now.  If its
 * completion has no room, it is held until weft__soft_release(). */
void weft__soft_complete(struct weft__soft *soft, struct weft__soft_op *op,
			 int32_t result, uint32_t flags);

/* Posts what was held, as far as there is room. */
void weft__soft_release(struct weft__soft *soft);

/* Enters, or leaves, the requests that wait for an edge. */
void weft__soft_op_link(struct weft__soft *soft, struct weft__soft_watch *watch,
			struct weft__soft_op *op, bool ages);
void weft__soft_op_unlink(struct weft__soft *soft,
			  struct weft__soft_watch *watch,
			  struct weft__soft_op *op);

/* Takes the request out of those whose hint is to be checked (SOFT4). */
void weft__soft_op_is_sure(struct weft__soft *soft, struct weft__soft_op *op);

/* Shows in the ring's flags what has to be done. */
void weft__soft_show(struct weft__soft *soft);

#endif

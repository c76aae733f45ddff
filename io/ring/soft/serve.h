/* SPDX-License-Identifier: MIT */
/*
 * Serving - carries out the entries of a soft ring, and those requests whose
 * descriptors have become ready.  The holder of the shard's lock calls it.
 */
#ifndef WEFT_IO_RING_SOFT_SERVE_H
#define WEFT_IO_RING_SOFT_SERVE_H

#include "io/ring/soft/soft.h"

/* Carries out an entry, as far as it need not wait.  0; -EBUSY: there is no
 * room for its completion; -EAGAIN: no memory for it.  It is not taken then. */
int weft__soft_submit_one(struct weft__soft *soft,
			  const struct weft__soft_entry *entry);

/* An event of a descriptor. */
void weft__soft_serve(struct weft__soft *soft, int fd, uint32_t generation,
		      uint32_t events);

/* Goes on with what was left: completions that were held, and descriptors that
 * are ready. */
void weft__soft_resume(struct weft__soft *soft);

/* Tries the requests again that are late, if they are due.  Returns when they
 * are due next; UINT64_MAX: there are none.  */
uint64_t weft__soft_retry_late(struct weft__soft *soft, uint64_t now_ns);

/* Is there no room for further completions? */
bool weft__soft_is_full(struct weft__soft *soft);

/* Under the lock: sets the descriptors of requests that were linked before this
 * period anew.  Returns whether some are left. */
bool weft__soft_check(struct weft__soft *soft);

/* Under the lock: drops what is known of the number.  If it is about to be
 * closed the file leaves the epoll set, whatever waits: a copy may keep the
 * file.  Otherwise requests that wait on the number look again at what has it
 * now; without a file they fail. */
void weft__soft_forget(struct weft__soft *soft, int fd, bool closes);

/* Under the lock: cancels a request that waits for an edge. */
int weft__soft_cancel_linked(struct weft__soft *soft, struct weft__soft_op *op);

#endif

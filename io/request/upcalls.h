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

/* Has the listener neither a request in flight nor tasks that wait?  Under the
 * entry's lock.  io/listen/listener.c */
bool weft__listener_is_idle(const struct weft__listener *listener);

/* Called by the task that closes the descriptor, with `closing` set: ends all
 * waits, closes the connections that no task took, cancels the request.  False:
 * call it once more.  io/listen/listener.c */
bool weft__listener_end(struct weft__worker *worker, struct weft__fd *entry);
void weft__listener_free(struct weft__reactor *reactor,
			 struct weft__listener *listener);

/* A descriptor was closed: lets the oldest task of each listener that lacked
 * descriptors try again.  io/listen/listener.c */
void weft__listeners_feed(struct weft__worker *worker);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Out - a buffer for what a stream is to send, and a worker's store of those
 * that no stream needs: the one used last is the first to be used again, as it
 * is warm in the caches.
 */
#ifndef WEFT_IO_REQUEST_SEND_BUFFER_H
#define WEFT_IO_REQUEST_SEND_BUFFER_H

#include <stdint.h>

enum {
	WEFT__OUT_BYTES = 4 << 10,
	WEFT__OUTS_MOST = 128, /* kept by a worker: as many as it has runs in a
				  tick */
};

struct weft__out {
	struct weft__out *next; /* in the store */
	uint32_t bytes;		/* put into it */
	uint32_t at;		/* and sent of those */
	int32_t said;		/* by the last send, if it left some */
	char data[WEFT__OUT_BYTES];
};

/* Owner only. */
struct weft__outs {
	struct weft__out *first;
	uint32_t count;
};

/* An empty one, or NULL without memory. */
struct weft__out *weft__out_take(struct weft__outs *outs);
void weft__out_drop(struct weft__outs *outs, struct weft__out *out);

/* Frees those that are kept. */
void weft__outs_close(struct weft__outs *outs);

#endif

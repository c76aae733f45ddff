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
	WEFT__SEND_BUFFER_BYTES = 4 << 10,
	WEFT__SEND_BUFFERS_MAX =
		128, /* kept by a worker: as many as it has runs in a
				  tick */
};

struct weft__send_buffer {
	struct weft__send_buffer *next; /* in the store */
	uint32_t bytes;		/* put into it */
	uint32_t at;		/* and sent of those */
	int32_t said;		/* by the last send, if it left some */
	char data[WEFT__SEND_BUFFER_BYTES];
};

/* Owner only. */
struct weft__send_buffers {
	struct weft__send_buffer *first;
	uint32_t count;
};

/* An empty one, or NULL without memory. */
struct weft__send_buffer *
weft__send_buffer_take(struct weft__send_buffers *outs);
void weft__send_buffer_drop(struct weft__send_buffers *outs,
			    struct weft__send_buffer *out);

/* Frees those that are kept. */
void weft__send_buffers_close(struct weft__send_buffers *outs);

#endif

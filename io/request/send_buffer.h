/* SPDX-License-Identifier: MIT */
/*
 * Send buffer - a buffer for data that a stream is to send, and a worker's
 * store of free ones.  The last one freed is the first to be used again: it is
 * still in the caches.
 */
#ifndef WEFT_IO_REQUEST_SEND_BUFFER_H
#define WEFT_IO_REQUEST_SEND_BUFFER_H

#include <stdint.h>

enum {
	WEFT__SEND_BUFFER_BYTES = 4 << 10,
	WEFT__SEND_BUFFERS_MAX =
		128, /* kept by a worker: its runs in a tick */
};

struct weft_allocator;

struct weft__send_buffer {
	struct weft__send_buffer *next; /* in the store */
	uint32_t bytes;		/* put into it */
	uint32_t at;		/* sent of those */
	int32_t said;		/* result of the last send, if it left some */
	char data[WEFT__SEND_BUFFER_BYTES];
};

/* Owner only. */
struct weft__send_buffers {
	const struct weft_allocator *memory; /* immutable; see
						runtime/base/memory.h */
	struct weft__send_buffer *first;
	uint32_t count;
};

/* Returns an empty buffer, or NULL without memory. */
struct weft__send_buffer *
weft__send_buffer_take(struct weft__send_buffers *outs);
void weft__send_buffer_drop(struct weft__send_buffers *outs,
			    struct weft__send_buffer *out);

/* Frees the buffers in the store. */
void weft__send_buffers_close(struct weft__send_buffers *outs);

#endif

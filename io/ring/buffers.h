/* SPDX-License-Identifier: MIT */
/*
 * Buffers - a ring of buffers that a ring's receives take from.  The owner of
 * the ring appends buffers; the carrier takes the oldest for each receive.
 *
 * The form is the one that the kernel reads (struct io_uring_buf_ring).  The
 * tail is in the first entry, which is otherwise a buffer as all others.
 *
 * Orderings
 *   [buffers.tail]  give release -> the carrier's acquire: the entry, and that
 *       the last holder no longer uses the buffer; and through the carrier ->
 *       taken acquire, by the thread that uses it next.
 */
#ifndef WEFT_IO_RING_BUFFERS_H
#define WEFT_IO_RING_BUFFERS_H

#include <stdint.h>

#include "runtime/base/atomic.h"

struct weft__ring_buffer {
	uint64_t address;
	uint32_t bytes;
	uint16_t id; /* named by the completion */
	weft__atomic(uint16_t) tail; /* of the ring: in the first entry */
};

/* Owner only: appends a buffer as the `index`-th, counted from 0; wraps.
 * count: the entries, a power of two. */
static inline void weft__ring_buffers_give(struct weft__ring_buffer *buffers,
					   uint32_t count, uint32_t index,
					   void *memory, uint32_t bytes,
					   uint16_t id)
{
	struct weft__ring_buffer *buffer = &buffers[index & (count - 1)];

	buffer->address = (uint64_t)(uintptr_t)memory;
	buffer->bytes = bytes;
	buffer->id = id;
	/* pairs: [buffers.tail] */
	weft__store(&buffers->tail, (uint16_t)(index + 1), release);
}

/* A buffer was taken: orders its use after that of its last holder. */
static inline void
weft__ring_buffers_taken(const struct weft__ring_buffer *buffers)
{
	/* pairs: [buffers.tail] */
	(void)weft__load(&buffers->tail, acquire);
}

#endif

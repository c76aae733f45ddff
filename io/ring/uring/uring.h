/* SPDX-License-Identifier: MIT */
/*
 * Uring - what a ring over the kernel's io_uring keeps beside struct
 * weft__ring.
 */
#ifndef WEFT_IO_RING_URING_URING_H
#define WEFT_IO_RING_URING_URING_H

#include <liburing.h>

#include "io/ring/carrier.h"
#include "io/ring/ring.h"

/* Linux 6.10, and newer headers. */
#ifndef IORING_ACCEPT_POLL_FIRST
#define IORING_ACCEPT_POLL_FIRST (1u << 2)
#endif

/* Immutable but for set_fd, which attach sets, and what `uring` points at. */
struct weft__uring {
	struct io_uring uring;
	uint32_t enter_flags; /* the ring's name on entering */
	uint32_t wait_flags;  /* the same, to wait */
	bool accept_polls;    /* the kernel knows IORING_ACCEPT_POLL_FIRST */
	int set_fd;	      /* for a foreign loop; -1: none */
};

static inline struct weft__uring *weft__uring(const struct weft__ring *ring)
{
	return ring->own;
}

/* The calls of struct weft__carrier; the comments are there and in ring.h. */
void weft__uring_prepare(struct weft__ring *ring,
			 const struct weft__request *request,
			 uint64_t user_data);
int weft__uring_cancel(struct weft__ring *ring, uint64_t user_data);
void weft__uring_cancel_all(struct weft__ring *ring);
int weft__uring_add_buffers(struct weft__ring *ring,
			    struct weft__ring_buffer *buffers, uint32_t count,
			    uint8_t group);
int weft__uring_add_files(struct weft__ring *ring, uint32_t places);
bool weft__uring_set_file(struct weft__ring *ring, uint32_t place, int fd);
void weft__uring_drop_files(struct weft__ring *ring);

int weft__uring_attach(struct weft__ring *ring, int timer_fd);
uint64_t weft__uring_rest(struct weft__ring *ring);
void weft__uring_rouse(struct weft__ring *ring);

/* Closes what weft__uring_attach() has opened. */
void weft__uring_detach(struct weft__uring *own);

/* Encodes a request into an entry, all of which it writes. */
void weft__uring_encode(const struct weft__request *request,
			uint64_t user_data, struct io_uring_sqe *ret_sqe);

/* The entry that weft__uring_prepare() fills in. */
static inline struct io_uring_sqe *weft__uring_next(struct weft__ring *ring)
{
	return &weft__uring(ring)->uring.sq.sqes[ring->tail & ring->mask];
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Carrier - the calls by which a ring reaches what carries its requests out:
 * the kernel's io_uring (uring/), or system calls and epoll (soft/).  Tests on
 * virtual time have one of their own (tests/fake/fake_ring.c).  Each call does
 * what the function of ring.h with its name describes.
 */
#ifndef WEFT_IO_RING_CARRIER_H
#define WEFT_IO_RING_CARRIER_H

#include "io/ring/ring.h"

struct weft__carrier {
	const char *name;
	bool wants_nonblock; /* see weft__ring_wants_nonblock() */
	void (*close)(struct weft__ring *ring);
	void (*prepare)(struct weft__ring *ring,
			const struct weft__request *request,
			uint64_t user_data);
	int (*submit)(struct weft__ring *ring);
	int (*turn)(struct weft__ring *ring);
	int (*wait)(struct weft__ring *ring, uint64_t wait_ns);
	int (*attach)(struct weft__ring *ring, int timer_fd);
	uint64_t (*rest)(struct weft__ring *ring);
	void (*rouse)(struct weft__ring *ring);
	int (*cancel)(struct weft__ring *ring, uint64_t user_data);
	void (*cancel_all)(struct weft__ring *ring);
	/* NULL: nothing to forget. */
	void (*forget)(struct weft__ring *ring, int fd, bool closes);
	int (*add_buffers)(struct weft__ring *ring,
			   struct weft__ring_buffer *buffers, uint32_t count,
			   uint8_t group);
	int (*add_files)(struct weft__ring *ring, uint32_t places);
	bool (*set_file)(struct weft__ring *ring, uint32_t place, int fd);
	void (*drop_files)(struct weft__ring *ring);
};

#endif

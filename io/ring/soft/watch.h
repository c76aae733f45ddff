/* SPDX-License-Identifier: MIT */
/*
 * Watches - what a soft ring knows of each descriptor: which events its epoll
 * set reports, what was reported, and the requests that wait.  Under the ring's
 * lock.
 *
 * A number that was closed and belongs to another file has another generation;
 * an event of the older file, which another descriptor may keep open, is known
 * by it and dropped.
 */
#ifndef WEFT_IO_RING_SOFT_WATCH_H
#define WEFT_IO_RING_SOFT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__soft;
struct weft__soft_op;

enum weft__soft_watch_flags {
	WEFT__WATCH_READY_IN = 1 << 0, /* see SOFT3 in soft.h */
	WEFT__WATCH_READY_OUT = 1 << 1,
	/* An end, an error, or urgent data was reported. */
	WEFT__WATCH_UNUSUAL = 1 << 2,
	/* TCP: a receive that does not fill its buffer leaves nothing. */
	WEFT__WATCH_DRAINS = 1 << 3,
	WEFT__WATCH_AGAIN = 1 << 4, /* in the list of `again` */
};

struct weft__soft_watch {
	struct weft__soft_op *head; /* requests that wait, the oldest first */
	struct weft__soft_op *tail;
	uint32_t generation;
	uint16_t events; /* that are reported; 0: not in the epoll set */
	uint8_t flags;
	uint8_t vain; /* events in a row that no request waited for */
	int32_t again_next; /* in the list of `again`; -1: the last */
};

struct weft__soft_watches {
	struct weft__soft_watch **chunks;
	uint32_t chunks_count; /* a power of two, or 0 */
	/* Descriptors that are ready, and were left for the next turn. */
	int32_t again; /* -1: none */
	int32_t again_last;
	const struct weft_allocator *memory; /* immutable */
};

/* memory: see runtime/base/memory.h. */
void weft__soft_watches_init(struct weft__soft_watches *watches,
			     const struct weft_allocator *memory);
void weft__soft_watches_fini(struct weft__soft_watches *watches);

/* NULL: the number was never used here. */
struct weft__soft_watch *
weft__soft_watch_find(struct weft__soft_watches *watches, int fd);

/* Makes the epoll set report `events` (EPOLLIN, EPOLLOUT) of the descriptor.
 * 1: it was set anew, and what is ready will be reported; 0: it was so already.
 * -EPERM: the file has no readiness; -EBADF, -ENOMEM. */
int weft__soft_watch(struct weft__soft *soft, int fd, uint32_t events,
		     struct weft__soft_watch **ret_watch);

/* Sets the events anew, so that what is ready is reported again.  0, or an
 * error as above. */
int weft__soft_watch_set(struct weft__soft *soft, int fd,
			 struct weft__soft_watch *watch, uint32_t events);

/* The same for a number that is being closed, which is not added to the set
 * (SOFT7).  Its requests are tried again: 1, or an error as above. */
int weft__soft_watch_late(struct weft__soft *soft, int fd,
			  struct weft__soft_watch **ret_watch);

/* Takes the descriptor out of the epoll set. */
void weft__soft_unwatch(struct weft__soft *soft, int fd,
			struct weft__soft_watch *watch);

/* Leaves the descriptor for the next turn; and takes the first of those, or
 * returns -1. */
void weft__soft_again_add(struct weft__soft *soft, int fd,
			  struct weft__soft_watch *watch);
int weft__soft_again_take(struct weft__soft *soft);

void weft__soft_link(struct weft__soft_watch *watch, struct weft__soft_op *op);
void weft__soft_unlink(struct weft__soft_watch *watch,
		       struct weft__soft_op *op);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Soft ring - a ring without io_uring, for systems that refuse it.  Requests
 * are carried out by system calls:
 *
 *	entry --> a call that does not wait --------------> completion
 *	            | -EAGAIN                          ^ ^
 *	            '--> linked to its descriptor;     | |
 *	                 epoll reports an edge: again -' |
 *	a file, opening, ... --> a thread of the pool ---'
 *
 * Each ring has an epoll set.  A descriptor is added when a request first waits
 * for it, edge-triggered, and stays until it is closed.  So a connection that
 * is served costs no epoll_ctl() per request.
 *
 * Invariants
 *   SOFT1  Only the holder of the shard's lock (RING2) takes entries and
 *       events.  So no edge is taken between a try that found nothing and the
 *       link: it is reported later, and the request is tried again.
 *   SOFT2  Requests that wait, and completions, are under the ring's own lock,
 *       which is never held through a wait: cancelling, and threads of the
 *       pool, need nothing else.
 *   SOFT3  READY of a descriptor is set at each edge, and cleared when a try
 *       found nothing.  While it is clear, all that comes is reported by a
 *       later edge; so a request that expects nothing yet need not be tried.
 *   SOFT4  That a number is in the epoll set is only a hint: the program may
 *       have closed the file by close(2), so that the number is another's.  A
 *       request that has waited for a while has its descriptor set anew, which
 *       also reports what is ready.  So a wrong hint costs AGE_NS, and no
 *       request waits for ever.  A close by weft leaves no wrong hint.
 *   SOFT5  `sleeping` is set under the lock after a look for completions.  A
 *       thread that posts one finds it set, and writes to the eventfd.
 *   SOFT6  One place of the completions is the submitter's: others leave it
 *       free.  So the result of an entry always has room when it was looked for
 *       before.
 *   SOFT7  A number is never added to the epoll set between the time when a
 *       close has the rings forget it and the time when it is another file's:
 *       epoll keeps a file that has lost its number while a copy of it is open,
 *       and nothing can take it out.  So a request that is late
 *       (WEFT__REQUEST_LATE) waits for no event.  It is in `late`, and is tried
 *       again every RETRY_NS, until it is done or the end of the close cancels
 *       it.  While there is one, no wait is longer.
 */
#ifndef WEFT_IO_RING_SOFT_SOFT_H
#define WEFT_IO_RING_SOFT_SOFT_H

#include <sys/epoll.h>
#include <weft/blocking.h>

#include "io/ring/carrier.h"
#include "io/ring/soft/watch.h"
#include "runtime/base/assert.h"
#include "runtime/base/lock.h"

/* Not a result of a call: the request has to wait until its descriptor is ready
 * (WAITS), or for a thread of the pool (BLOCKS). */
#define WEFT__SOFT_WAITS INT32_MIN
#define WEFT__SOFT_BLOCKS (INT32_MIN + 1)

struct weft__soft_entry {
	struct weft__request request;
	uint64_t user_data;
};

enum weft__soft_state {
	WEFT__SOFT_FREE,
	WEFT__SOFT_LINKED, /* to its descriptor */
	WEFT__SOFT_POOLED, /* a thread carries it out, or will */
	WEFT__SOFT_HELD,   /* done; its completion has no room */
};

struct weft__soft_work;

/* A request that is not done yet.  Under the lock. */
struct weft__soft_op {
	struct weft__request request;
	uint64_t user_data;
	struct weft__soft_op *next; /* of the descriptor, held, or free */
	struct weft__soft_op *prev;
	struct weft__soft_op *same_hash;
	struct weft__soft_op *older; /* see SOFT4 */
	struct weft__soft_op *younger;
	struct weft__soft_work *work; /* POOLED: see work.c */
	uint32_t linked_in;	      /* which period of AGE_NS */
	int32_t done; /* bytes so far; HELD: the result */
	uint32_t flags; /* HELD: the completion's */
	uint8_t state;
	bool ages;
	bool cancelled; /* POOLED */
};

struct weft__soft_queue {
	struct weft__soft_op *head; /* the oldest */
	struct weft__soft_op *tail;
};

/* A ring of buffers, see io/ring/buffers.h. */
struct weft__soft_buffers {
	struct weft__ring_buffer *buffers;
	uint32_t count;
	uint16_t head; /* the next to take */
};

enum {
	WEFT__SOFT_EVENTS = 64, /* taken at a time */
	WEFT__SOFT_GROUPS = 4,
};

struct weft__soft {
	/* Immutable. */
	struct weft__ring *ring;
	struct weft_runtime *runtime;
	int epoll_fd;
	struct weft__soft_entry *entries;
	struct weft__completion *completions;
	struct weft_lane lane; /* in the pool */
	/* The words of struct weft__ring. */
	weft__atomic(uint32_t) head;
	weft__atomic(uint32_t) published;
	weft__atomic(uint32_t) flags;
	weft__atomic(uint32_t) reaped;
	weft__atomic(uint32_t) posted;
	/* The shard's lock held. */
	struct epoll_event events[WEFT__SOFT_EVENTS];
	uint64_t looked_ns; /* when events were last asked for */
	int timer_fd; /* in place of epoll_pwait2(); -1: not needed */
	/* Under the lock. */
	struct weft__lock lock WEFT__APART;
	bool sleeping;
	uint32_t waiting; /* requests that wait for an edge, but for WAKE's */
	struct weft__soft_watches watches;
	struct weft__soft_op **by_hash;
	uint32_t hash_size; /* a power of two */
	uint32_t ops_count; /* in by_hash */
	struct weft__soft_op *free;
	struct weft__soft_block *blocks;
	struct weft__soft_queue held;
	struct weft__soft_op *starting; /* for the pool */
	struct weft__soft_op *oldest, *youngest; /* see SOFT4 */
	uint32_t period;
	uint64_t period_ends_ns;
	bool checks; /* some of this period are left */
	struct weft__soft_watch late; /* no descriptor's: see SOFT7 */
	uint64_t retry_ns; /* when those are due */
	struct weft__soft_buffers groups[WEFT__SOFT_GROUPS];
};

static inline struct weft__soft *weft__soft(const struct weft__ring *ring)
{
	return ring->own;
}

static inline bool weft__soft_is_late(const struct weft__request *request)
{
	return request->flags & WEFT__REQUEST_LATE;
}

static inline bool weft__soft_is_multishot(const struct weft__request *request)
{
	return request->flags & WEFT__REQUEST_MULTISHOT;
}

#endif

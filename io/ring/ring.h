/* SPDX-License-Identifier: MIT */
/*
 * Ring - one io_uring, as several threads use it.
 *
 *	owner: next, publish   lock holder: submit    lock holder: reap
 *	        [ entries ] --------> kernel --------> [ completions ]
 *
 * liburing sets the ring up and maps it; the rest of liburing assumes one
 * thread and keeps the tail of the entries to itself until it submits.  Here
 * the owner publishes each entry immediately, so that another thread can submit
 * it while the owner computes.
 *
 * Threads that may call
 *   RING1  Entries are written and published by the owner alone.
 *   RING2  Submitting, waiting and reaping are for the holder of the shard's
 *       lock (io/request/shard.h), whichever thread that is.
 *   RING3  Cancelling needs no lock but the kernel's own: a parked owner holds
 *       the shard's, and its requests must be cancelled too.
 *
 * Memory that is shared with the kernel is accessed by liburing's accessors,
 * which order it between our threads too: the tail of the entries is stored
 * with release and loaded with acquire.
 */
#ifndef WEFT_IO_RING_RING_H
#define WEFT_IO_RING_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

struct weft__ring {
	struct io_uring uring; /* immutable while open, but what it points at */
	uint32_t tail;	       /* of the entries; owner only */
	uint32_t mask;	       /* immutable */
	uint32_t enter_flags;  /* immutable: how it is named on entering */
	uint32_t wait_flags;   /* immutable: the same, to wait */
	bool alone;	       /* immutable: no other thread uses it */
};

struct weft__completion {
	uint64_t user_data;
	int32_t result;
	uint32_t flags;
};

/* alone: no other thread will ever use it.  0, or -ENOMEM, -EMFILE, -ENFILE,
 * -ENOSYS (the kernel refuses io_uring or is too old; *ret_reason then tells
 * why, in a word or two). */
int weft__ring_open(struct weft__ring *ring, unsigned entries, bool alone,
		    const char **ret_reason);
void weft__ring_close(struct weft__ring *ring);

/* Submits all that is published.  0, or -EAGAIN or -EBUSY: some of it stays
 * where it is; take completions, and try again later. */
int weft__ring_submit(struct weft__ring *ring);

/* The same, and lets the kernel post what it holds back. */
int weft__ring_turn(struct weft__ring *ring);

/* The same, and waits for a completion, for wait_ns at most (UINT64_MAX: for
 * ever).  0 whatever ended the wait. */
int weft__ring_wait(struct weft__ring *ring, uint64_t wait_ns);

/* Takes at most that many completions, oldest first. */
unsigned weft__ring_reap(struct weft__ring *ring,
			 struct weft__completion *ret_completions,
			 unsigned max);

/* Cancels one request, from any thread.  0: it will complete with an error, if
 * not with success.  -EALREADY: it is being carried out and was interrupted.
 * -ENOENT: it is done, not submitted yet, or between two states of the
 * kernel's. */
int weft__ring_cancel(struct weft__ring *ring, uint64_t user_data);

/* Cancels all requests, before the end.  One that is being carried out may
 * still be when this returns. */
void weft__ring_cancel_all(struct weft__ring *ring);

/* Entries published and not submitted.  From any thread. */
static inline uint32_t weft__ring_unsubmitted(const struct weft__ring *ring)
{
	/* The head first: it never passes a tail that is read later. */
	uint32_t head = io_uring_smp_load_acquire(ring->uring.sq.khead);

	return io_uring_smp_load_acquire(ring->uring.sq.ktail) - head;
}

/* Has the kernel something to do before it can post completions? */
static inline bool weft__ring_held_back(const struct weft__ring *ring)
{
	return IO_URING_READ_ONCE(*ring->uring.sq.kflags) &
	       (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Is it a thread that has submitted requests, and has yet to enter the kernel
 * or be interrupted?  Other completions are held back for want of room. */
static inline bool weft__ring_awaits_thread(const struct weft__ring *ring)
{
	return IO_URING_READ_ONCE(*ring->uring.sq.kflags) & IORING_SQ_TASKRUN;
}

/* Are there completions to take?  An estimate but for the lock's holder. */
static inline bool weft__ring_completed(const struct weft__ring *ring)
{
	return io_uring_smp_load_acquire(ring->uring.cq.ktail) !=
	       IO_URING_READ_ONCE(*ring->uring.cq.khead);
}

/* Owner only: the entry to fill in next, or NULL while all are in use. */
static inline struct io_uring_sqe *weft__ring_next(struct weft__ring *ring)
{
	uint32_t head = io_uring_smp_load_acquire(ring->uring.sq.khead);

	if (ring->tail - head > ring->mask)
		return NULL;
	return &ring->uring.sq.sqes[ring->tail & ring->mask];
}

/* Owner only: that entry is filled in. */
static inline void weft__ring_publish(struct weft__ring *ring)
{
	io_uring_smp_store_release(ring->uring.sq.ktail, ++ring->tail);
}

/* Owner only, lock held: takes back what it published last, unless the kernel
 * has it.  Returns whether it did. */
static inline bool weft__ring_withdraw(struct weft__ring *ring)
{
	if (!weft__ring_unsubmitted(ring))
		return false;
	io_uring_smp_store_release(ring->uring.sq.ktail, --ring->tail);
	return true;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Ring - one io_uring, used by several threads.
 *
 *	owner: next, publish   lock holder: submit    lock holder: reap
 *	        [ entries ] --------> kernel --------> [ completions ]
 *
 * liburing sets the ring up and maps it.  The rest of liburing assumes one
 * thread, and keeps the tail of the entries to itself until it submits.  Here
 * the owner publishes each entry immediately, so that another thread can submit
 * it while the owner computes.
 *
 * Callers
 *   RING1  Only the owner writes and publishes entries.
 *   RING2  Only the holder of the shard's lock (io/request/shard.h) submits,
 *       waits and reaps; it may be any thread.
 *   RING3  Cancelling needs only the kernel's own lock: a parked owner holds
 *       the shard's lock, and its requests must be cancelled too.
 *
 * Words shared with the kernel are accessed with liburing's accessors, which
 * also order them between our threads: the tail of the entries is stored with
 * release and loaded with acquire.
 */
#ifndef WEFT_IO_RING_RING_H
#define WEFT_IO_RING_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

struct weft__ring {
	struct io_uring uring; /* immutable, except what it points at */
	uint32_t tail;	       /* of the entries; owner only */
	uint32_t mask;	       /* immutable */
	uint32_t enter_flags;  /* immutable: the ring's name on entering */
	uint32_t wait_flags;   /* immutable: the same, to wait */
	bool alone;	       /* immutable: no other thread uses it */
};

struct weft__completion {
	uint64_t user_data;
	int32_t result;
	uint32_t flags;
};

/* Opens a ring.  alone: no other thread will ever use it.  0, or -ENOMEM,
 * -EMFILE, -ENFILE, -ENOSYS (the kernel refuses io_uring or is too old;
 * *ret_reason is then the reason, in a few words). */
int weft__ring_open(struct weft__ring *ring, unsigned entries, bool alone,
		    const char **ret_reason);
void weft__ring_close(struct weft__ring *ring);

/* Submits all that is published.  0, or -EAGAIN or -EBUSY: some entries stay in
 * the ring; take completions, and try again later. */
int weft__ring_submit(struct weft__ring *ring);

/* The same, and lets the kernel post completions that it holds back. */
int weft__ring_turn(struct weft__ring *ring);

/* The same, and waits for a completion, for wait_ns at most (UINT64_MAX: for
 * ever).  Returns 0 whatever ended the wait. */
int weft__ring_wait(struct weft__ring *ring, uint64_t wait_ns);

/* Takes at most `max` completions, oldest first. */
unsigned weft__ring_reap(struct weft__ring *ring,
			 struct weft__completion *ret_completions,
			 unsigned max);

/* Cancels one request, from any thread.  0: it will complete with an error, or
 * with success.  -EALREADY: it is being carried out and was interrupted.
 * -ENOENT: it is done, not submitted yet, or the kernel is changing its
 * state. */
int weft__ring_cancel(struct weft__ring *ring, uint64_t user_data);

/* Cancels all requests, before the ring is closed.  A request that is being
 * carried out may still be in flight when this returns. */
void weft__ring_cancel_all(struct weft__ring *ring);

/* Entries published and not submitted.  From any thread. */
static inline uint32_t weft__ring_unsubmitted(const struct weft__ring *ring)
{
	/* The head is read first: it never passes a tail that is read later. */
	uint32_t head = io_uring_smp_load_acquire(ring->uring.sq.khead);

	return io_uring_smp_load_acquire(ring->uring.sq.ktail) - head;
}

/* Has the kernel work to do before it can post completions? */
static inline bool weft__ring_held_back(const struct weft__ring *ring)
{
	return IO_URING_READ_ONCE(*ring->uring.sq.kflags) &
	       (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Does work wait for a thread that has submitted requests, until that thread
 * enters the kernel or is interrupted?  Other completions are held back for
 * lack of room. */
static inline bool weft__ring_awaits_thread(const struct weft__ring *ring)
{
	return IO_URING_READ_ONCE(*ring->uring.sq.kflags) & IORING_SQ_TASKRUN;
}

/* Are there completions to take?  An estimate, except for the lock's holder. */
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

/* Owner only: publishes that entry, which is filled in. */
static inline void weft__ring_publish(struct weft__ring *ring)
{
	io_uring_smp_store_release(ring->uring.sq.ktail, ++ring->tail);
}

/* Owner only, lock held: takes back the entry published last, unless the kernel
 * has taken it.  Returns whether it did. */
static inline bool weft__ring_withdraw(struct weft__ring *ring)
{
	if (!weft__ring_unsubmitted(ring))
		return false;
	io_uring_smp_store_release(ring->uring.sq.ktail, --ring->tail);
	return true;
}

#endif

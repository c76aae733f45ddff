/* SPDX-License-Identifier: MIT */
/*
 * Ring - the way of requests to a kernel, and of their completions back, used
 * by several threads.
 *
 *	owner: prepare, publish   lock holder: submit   lock holder: reap
 *	        [ entries ] --------> carrier --------> [ completions ]
 *
 * The carrier is what carries the requests out: the kernel's io_uring
 * (uring/), or system calls and epoll (soft/).  A ring has the words and arrays
 * of io_uring, whichever carrier fills them, so that what is here asks none; a
 * carrier encodes, enters, cancels and registers (carrier.h).
 *
 * The owner publishes each entry immediately, so that another thread can submit
 * it while the owner computes.
 *
 * Callers
 *   RING1  Only the owner writes and publishes entries.
 *   RING2  Only the holder of the shard's lock (io/request/shard.h) submits,
 *       waits and reaps; it may be any thread.
 *   RING3  Cancelling needs only the carrier's own lock: a parked owner holds
 *       the shard's lock, and its requests must be cancelled too.
 *
 * Orderings: words shared with the carrier, which also order accesses between
 * our threads.
 *   [ring.entries]  publish release -> the carrier's acquire, and that of
 *       whoever submits: the entry.  The carrier's release of the head -> the
 *       owner's acquire: that the entry is free.
 *   [ring.completions]  the carrier's release -> the reaper's acquire: the
 *       completion, and what the request wrote.  The reaper's release -> the
 *       carrier's acquire: that the completion was read.
 */
#ifndef WEFT_IO_RING_RING_H
#define WEFT_IO_RING_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "io/ring/buffers.h"
#include "io/ring/request.h"
#include "runtime/base/atomic.h"

enum weft__completion_flags {
	WEFT__COMPLETION_BUFFER = 1 << 0,   /* it names a buffer */
	WEFT__COMPLETION_MORE = 1 << 1,	    /* another one follows */
	WEFT__COMPLETION_NONEMPTY = 1 << 2, /* more can be received now */
	WEFT__COMPLETION_BUFFER_SHIFT = 16, /* the buffer's id, above it */
};

struct weft__completion {
	uint64_t user_data;
	int32_t result;
	uint32_t flags;
};

/* Of the word *flags of a ring. */
enum weft__ring_flags {
	WEFT__RING_OVERFLOW = 1 << 1, /* completions that lack room */
	WEFT__RING_TASKRUN = 1 << 2,  /* work for a thread that submitted */
	/* Only entering shows whether something has come.  Not the kernel's. */
	WEFT__RING_UNSEEN = 1 << 15,
};

struct weft_allocator;
struct weft__carrier;
struct weft_runtime;

struct weft__ring {
	/* Immutable: where the words shared with the carrier are. */
	weft__atomic(uint32_t) *head; /* of the entries; the carrier's */
	weft__atomic(uint32_t) *published; /* their tail; the owner's */
	weft__atomic(uint32_t) *flags;
	weft__atomic(uint32_t) *reaped; /* head of the completions; ours */
	weft__atomic(uint32_t) *posted; /* their tail; the carrier's */
	const struct weft__completion *completions; /* the carrier's */
	uint32_t tail;		   /* of the entries; owner only */
	/* Immutable. */
	uint32_t mask;		   /* entries - 1 */
	uint32_t completions_mask; /* completions - 1 */
	int fd;			   /* the ring's name in a message */
	bool alone;		   /* no other thread uses it */
	bool reports_ends; /* a multishot receive always reports the end */
	bool loses_resets; /* not always a reset that follows data */
	bool batches; /* several requests take less than as many calls */
	const struct weft__carrier *carrier;
	void *own; /* what the carrier keeps */
	const struct weft_allocator *memory; /* for what is kept with it; stays
						after the close */
};

/* The entries with which a ring takes the least memory. */
#define WEFT__RING_ENTRIES_LEAST 8u

/* The locked memory that a ring takes, where the kernel counts it. */
size_t weft__ring_locked_bytes(unsigned entries);

/* Opens a ring over io_uring.  alone: no other thread will ever use it.
 * memory: see runtime/base/memory.h.  0, or -ENOMEM, -EMFILE, -ENFILE, -ENOSYS
 * (the kernel refuses io_uring or is too old; *ret_reason is then the reason,
 * in a few words). */
int weft__ring_open(struct weft__ring *ring, unsigned entries, bool alone,
		    const struct weft_allocator *memory,
		    const char **ret_reason);

/* Opens a ring over epoll, for a runtime whose pool does what may block.  0, or
 * -ENOMEM, -EMFILE, -ENFILE. */
int weft__ring_open_soft(struct weft__ring *ring, unsigned entries, bool alone,
			 struct weft_runtime *runtime);

void weft__ring_close(struct weft__ring *ring);

/* ---- Entries ------------------------------------------------------------ */

/* Owner only: fills in the next entry, which is free. */
void weft__ring_prepare(struct weft__ring *ring,
			const struct weft__request *request,
			uint64_t user_data);

/* Owner only: is an entry free? */
static inline bool weft__ring_has_room(const struct weft__ring *ring)
{
	/* pairs: [ring.entries] */
	return ring->tail - weft__load(ring->head, acquire) <= ring->mask;
}

/* Owner only: publishes the entry that was prepared. */
static inline void weft__ring_publish(struct weft__ring *ring)
{
	/* pairs: [ring.entries] */
	weft__store(ring->published, ++ring->tail, release);
}

/* Entries published and not submitted.  From any thread. */
static inline uint32_t weft__ring_unsubmitted(const struct weft__ring *ring)
{
	/* The head is read first: it never passes a tail that is read later.
	 * pairs: [ring.entries] */
	uint32_t head = weft__load(ring->head, acquire);

	/* pairs: [ring.entries] */
	return weft__load(ring->published, acquire) - head;
}

/* Owner only, lock held: takes back the entry published last, unless the
 * carrier has taken it.  Returns whether it did. */
static inline bool weft__ring_withdraw(struct weft__ring *ring)
{
	if (!weft__ring_unsubmitted(ring))
		return false;
	/* pairs: [ring.entries] */
	weft__store(ring->published, --ring->tail, release);
	return true;
}

/* ---- Entering ----------------------------------------------------------- */

/* Submits all that is published.  0, or -EAGAIN or -EBUSY: some entries stay in
 * the ring; take completions, and try again later. */
int weft__ring_submit(struct weft__ring *ring);

/* The same, and lets the carrier post completions that it holds back. */
int weft__ring_turn(struct weft__ring *ring);

/* The same, and waits for a completion, for wait_ns at most (UINT64_MAX: for
 * ever).  Returns 0 whatever ended the wait. */
int weft__ring_wait(struct weft__ring *ring, uint64_t wait_ns);

/* For a thread that waits elsewhere.  Opens a descriptor that is readable, in a
 * rest, when there is something to take, and whenever timer_fd is readable; the
 * carrier closes it, not timer_fd.  Called once.  The descriptor, or -ENOMEM,
 * -EMFILE, -ENFILE. */
int weft__ring_attach(struct weft__ring *ring, int timer_fd);

/* Submits all that is published, and begins a rest, in which the descriptor
 * shows what comes.  Returns when to end it at the latest; 0: now, since there
 * is something already; UINT64_MAX: no limit.  weft__ring_rouse() ends it, and
 * has the carrier post what has come. */
uint64_t weft__ring_rest(struct weft__ring *ring);
void weft__ring_rouse(struct weft__ring *ring);

/* Has the carrier work to do before it can post completions? */
static inline bool weft__ring_held_back(const struct weft__ring *ring)
{
	/* relaxed: a look; entering the ring orders. */
	return weft__load(ring->flags, relaxed) &
	       (WEFT__RING_TASKRUN | WEFT__RING_OVERFLOW);
}

/* The same, or may something have come that only entering the ring shows? */
static inline bool weft__ring_may_post(const struct weft__ring *ring)
{
	/* relaxed: as above. */
	return weft__load(ring->flags, relaxed) &
	       (WEFT__RING_TASKRUN | WEFT__RING_OVERFLOW | WEFT__RING_UNSEEN);
}

/* Does work wait for a thread that has submitted requests, until that thread
 * enters the kernel or is interrupted?  Other completions are held back for
 * lack of room. */
static inline bool weft__ring_awaits_thread(const struct weft__ring *ring)
{
	/* relaxed: as above. */
	return weft__load(ring->flags, relaxed) & WEFT__RING_TASKRUN;
}

/* ---- Completions -------------------------------------------------------- */

/* Are there completions to take?  An estimate, except for the lock's holder. */
static inline bool weft__ring_completed(const struct weft__ring *ring)
{
	/* pairs: [ring.completions]; relaxed: only reapers write it. */
	return weft__load(ring->posted, acquire) !=
	       weft__load(ring->reaped, relaxed);
}

/* Takes at most `max` completions, oldest first. */
unsigned weft__ring_reap(struct weft__ring *ring,
			 struct weft__completion *ret_completions,
			 unsigned max);

/* Cancels one request, from any thread.  0: it will complete with an error, or
 * with success.  -EALREADY: it is being carried out and was interrupted.
 * -ENOENT: it is done, not submitted yet, or the carrier is changing its
 * state. */
int weft__ring_cancel(struct weft__ring *ring, uint64_t user_data);

/* Cancels all requests, before the ring is closed.  A request that is being
 * carried out may still be in flight when this returns. */
void weft__ring_cancel_all(struct weft__ring *ring);

/* A descriptor number is about to be closed (`closes`: requests on it will be
 * cancelled), was closed, or is that of a new file: drops what the carrier
 * knows of it.  From any thread. */
void weft__ring_forget(struct weft__ring *ring, int fd, bool closes);

/* Is a socket with O_NONBLOCK connected in less time? */
bool weft__ring_wants_nonblock(const struct weft__ring *ring);

/* "io_uring" or "epoll". */
const char *weft__ring_name(const struct weft__ring *ring);

/* Does the carrier know anything of numbers? */
bool weft__ring_remembers(const struct weft__ring *ring);

/* ---- Registered with a ring --------------------------------------------- */

/* Names a ring of `count` buffers (a power of two), all zero, as `group`.  0,
 * or an error: the carrier has no rings of buffers. */
int weft__ring_add_buffers(struct weft__ring *ring,
			   struct weft__ring_buffer *buffers, uint32_t count,
			   uint8_t group);

/* Makes the table of files, with that many empty places.  0, or an error; in
 * particular -EOPNOTSUPP: the carrier has no table that is of use. */
int weft__ring_add_files(struct weft__ring *ring, uint32_t places);

/* Puts a descriptor in a place, or takes one out (-1).  From any thread, unless
 * the ring is `alone`.  False: the carrier does not do it. */
bool weft__ring_set_file(struct weft__ring *ring, uint32_t place, int fd);

/* Empties and drops the table. */
void weft__ring_drop_files(struct weft__ring *ring);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Shard - a worker's ring, and the lock under which others help with it.
 *
 *	owner           writes entries; submits and reaps at its tick, and
 *	                sleeps in the ring with the lock held
 *	another worker  when the owner is late: submits and reaps in its place,
 *	                and runs the tasks that this made ready; at any time:
 *	                cancels a request
 *
 * Invariants
 *   SH1  Completions are copied out under the lock in a bounded batch, and
 *       tasks are made ready after the lock was dropped.
 *   SH2  A worker takes its own lock before it announces that it parks, and
 *       holds it through the wait.  Otherwise a helper could take the
 *       completion that is to wake it.
 *   SH3  A request that completes more than once (multishot) is written and
 *       submitted by the owner in one hold of the lock, or not at all; helpers
 *       never find one unsubmitted.  Without helpers it is submitted with the
 *       rest.
 *   SH4  `wake_armed` is cleared under the lock by the worker that reaps the
 *       end of the poll of wake_fd, so the owner that parks under the lock sees
 *       it.
 *   Modelled in tests/model/model_driver.c.
 */
#ifndef WEFT_IO_REQUEST_SHARD_H
#define WEFT_IO_REQUEST_SHARD_H

#include <pthread.h>

#include "io/os/schedstat.h"
#include "io/os/slice.h"
#include "io/request/fixed_files.h"
#include "io/request/recv_buffers.h"
#include "io/request/send_buffer.h"
#include "io/request/trylock.h"
#include "io/ring/ring.h"
#include "runtime/sched/worker.h"

enum {
	WEFT__BATCH_MAX = 128, /* completions reaped at a time */
};

/* The user_data of a request names the receiver of its completion. */
enum weft__tag {
	WEFT__TAG_OP,	     /* a task's operation; index: the task's */
	WEFT__TAG_STREAM,    /* a stream's; sequence and index: an address */
	/* The tags of a task's completions come before these. */
	WEFT__TAG_WAKE,	     /* a wake-up by another worker */
	WEFT__TAG_WAKE_SENT, /* our wake-up failed; index: the worker */
	WEFT__TAG_WAKE_FD,   /* the poll of wake_fd */
};

#define WEFT__SEQUENCE_MASK ((uint32_t)0x0fffffff)

/* In place of a time at which to look at streams: see io/stream/stream_look.c.
 * Of two of these and a time the order is that of what is due. */
enum weft__look {
	WEFT__LOOK_AT_NONE,  /* there are none */
	WEFT__LOOK_GOES_ON,  /* at the next tick, which comes immediately */
	WEFT__LOOK_BEGINS,   /* a tick is to set the time */
};

struct weft__shard {
	struct weft__ring ring; /* see ring.h */
	/* Owner only: its last batch, from any ring. */
	struct weft__completion batch[WEFT__BATCH_MAX];
	struct weft__trylock lock WEFT__APART;
	bool wake_armed;	/* under lock: wake_fd is being polled */
	struct weft__schedstat schedstat; /* owner only */
	struct weft__slice slice;	  /* owner only */
	int wake_fd; /* immutable; an eventfd, for foreign threads */
	/* Owner only, for a foreign loop: a timerfd, or -1; and the time to
	 * which it is set: see io/rest.c. */
	int timer_fd;
	uint64_t timer_ns;
	/* Under lock: the streams that have received lately, in a list, how
	 * many, and how many of those the look that began has not come to. */
	struct weft__stream *recent, *recent_last;
	uint32_t recent_count, look_left;
	/* When to look at them, or enum weft__look.  Written under lock. */
	weft__atomic(uint64_t) look_ns;
	struct weft__pool pools[WEFT__POOLS]; /* see recv_buffers.h */
	struct weft__send_buffers outs;		      /* owner only */
	struct weft__fixed_files files;	      /* see fixed_files.h */
};

static inline struct weft__shard *weft__shard(struct weft__worker *worker)
{
	return worker->shard;
}

static inline uint64_t weft__user_data(enum weft__tag tag, uint32_t sequence,
				       uint32_t index)
{
	return (uint64_t)tag << 60 |
	       (uint64_t)(sequence & WEFT__SEQUENCE_MASK) << 32 | index;
}

static inline enum weft__tag weft__tag_of(uint64_t user_data)
{
	return (enum weft__tag)(user_data >> 60);
}

static inline uint32_t weft__sequence_of(uint64_t user_data)
{
	return (uint32_t)(user_data >> 32) & WEFT__SEQUENCE_MASK;
}

/* soft: with a ring without io_uring.  0, or -ENOMEM, -EMFILE, -ENFILE, -ENOSYS
 * with a reason. */
int weft__shard_open(struct weft_runtime *runtime, unsigned entries, bool soft,
		     struct weft__shard **ret_shard, const char **ret_reason);
void weft__shard_close(struct weft__shard *shard);

/* Owner only: waits for the lock; a helper holds it only briefly. */
void weft__shard_lock(struct weft__shard *shard);

/* Is there anything to reap?  From any thread; an estimate. */
static inline bool weft__shard_pending(const struct weft__shard *shard)
{
	return weft__ring_completed(&shard->ring) ||
	       weft__ring_held_back(&shard->ring);
}

/* The same, or anything to submit. */
static inline bool weft__shard_has_work(const struct weft__shard *shard)
{
	return weft__shard_pending(shard) ||
	       weft__ring_unsubmitted(&shard->ring);
}

/* The same, or something that may have come and that only a look shows. */
static inline bool weft__shard_busy(const struct weft__shard *shard)
{
	return weft__ring_completed(&shard->ring) ||
	       weft__ring_may_post(&shard->ring) ||
	       weft__ring_unsubmitted(&shard->ring);
}

/* Is it time to look at streams?  Owner only. */
static inline bool weft__shard_looks(const struct weft__shard *shard,
				     uint64_t now_ns)
{
	/* relaxed: a hint; the look takes the lock. */
	return weft__load(&shard->look_ns, relaxed) - 1 < now_ns;
}

/* Submits and reaps, unless another thread holds the lock; `worker` runs the
 * tasks that this makes ready.  Returns how many. */
unsigned weft__shard_serve(struct weft__worker *worker,
			   struct weft__shard *shard);

/* The same for an owner that is late: also makes the owner's thread run the
 * work that the kernel holds back for it. */
unsigned weft__shard_help(struct weft__worker *worker,
			  struct weft__shard *shard);

/* Lock held: copies completions into the batch of `worker`; see SH4.
 * Completions of streams are handled immediately (STR1 in stream.h); each
 * leaves in the batch only the task to wake: see weft__stream_wake(). */
unsigned weft__shard_take(struct weft__worker *worker,
			  struct weft__shard *shard);

/* Owner only: submits its entries now, unless a helper is doing so. */
void weft__shard_flush(struct weft__shard *shard);

/* The same, if as many entries wait as a tick has runs. */
void weft__shard_relieve(struct weft__shard *shard);

/* Cancels a request, from any worker; results as of weft__ring_cancel. */
int weft__shard_cancel(struct weft__shard *shard, uint64_t user_data);

/* Owner only, lock held: submits a request.  False: the kernel does not take it
 * now, and it was taken back, so that no helper submits it (SH3).  Without
 * helpers it is submitted with the rest of the tick's. */
bool weft__shard_submit(struct weft__shard *shard,
			const struct weft__request *request,
			uint64_t user_data);

/* A stream's completion after it was handled: user_data and flags hold the id
 * of the task to wake, or 0. */
static inline struct weft__completion weft__stream_wake(uint64_t id)
{
	return (struct weft__completion){
		.user_data = weft__user_data(WEFT__TAG_STREAM, 0, (uint32_t)id),
		.flags = (uint32_t)(id >> 32),
	};
}

static inline uint64_t
weft__stream_wake_id(const struct weft__completion *completion)
{
	return (uint64_t)completion->flags << 32 |
	       (uint32_t)completion->user_data;
}

#endif

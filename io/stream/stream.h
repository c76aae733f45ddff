/* SPDX-License-Identifier: MIT */
/*
 * Stream - a connection, and the one request that receives for it.
 *
 *	kernel --> completions --> [word: newest piece] --> reader's own list
 *	           in their order   by who reaps, under     oldest first
 *	           (lock held)      the lock
 *
 * The word
 *
 *	63           32 31   5    4       3        2       1        0
 *	[ newest piece ][ TURN ][ LEFT ][ DRAINS ][ SENDS ][ WAITS ][ ARMED ]
 *
 *	ARMED	the request is the kernel's: it is cleared with its last
 *		completion, and then the reader may make the request again
 *	WAITS	the reader suspends; the reaping worker clears it, and wakes
 *		the reader
 *	SENDS	`going` is the kernel's, until its completion
 *	DRAINS	the reader suspends until then, perhaps as well; likewise
 *	LEFT	that completion left some of `going`, which is the reader's
 *	TURN	counts the waits: the task to wake is read before the CAS, which
 *		must not take the next reader for that one
 *
 * Pieces are buffers of the pool that the request takes from, linked newest
 * first; the reader takes them all, and turns them round.
 *
 * Invariants
 *   STR1  Completions of a stream are reported to it while the shard's lock is
 *       held, and so in the order in which they came.
 *   STR2  The reaping worker touches the stream up to the CAS of its word and
 *       no longer: with the last completions reported, the stream may be closed
 *       and its memory gone.
 *   STR3  A request that completes more than once is submitted by the owner of
 *       the ring under the lock (SH3).
 *   STR4  A request is made when there is none and nothing is left to read; so
 *       all pieces are of one pool, and what is received is in order.
 *   STR5  Put bytes go from `out` to `going` when the reader has nothing to
 *       read, or `out` is full, and neither SENDS nor LEFT is set: so they are
 *       sent in order.
 *
 * Orderings
 *   [stream.told]  the reaping worker's CAS, release -> the reader's load or
 *       CAS, acquire: the pieces, and what the last completion said.
 *   [stream.waits]  the reader's CAS, release -> the reaping worker's, acquire:
 *       the task to wake.
 *   [stream.sent]  the reaping worker's store, release -> the sender's load,
 *       acquire: the result.  After it the sender may be gone.
 *   [stream.armed]  the reader's or sender's store, release -> the reaping
 *       worker's load, acquire: what the request is of.
 *   Modelled in tests/model/model_stream.c and model_stream_put.c.
 */
#ifndef WEFT_IO_STREAM_STREAM_H
#define WEFT_IO_STREAM_STREAM_H

#include <errno.h>
#include <weft/stream.h>

#include "io/request/recv_buffers.h"
#include "io/request/shard.h"

/* The last completion said nothing of interest to the reader. */
#define WEFT__STREAM_SAID_NOTHING (-EINTR)

#define WEFT__STREAM_ARMED ((uint64_t)1 << 0)
#define WEFT__STREAM_WAITS ((uint64_t)1 << 1)
#define WEFT__STREAM_SENDS ((uint64_t)1 << 2)
#define WEFT__STREAM_DRAINS ((uint64_t)1 << 3)
#define WEFT__STREAM_LEFT ((uint64_t)1 << 4)
#define WEFT__STREAM_TURN ((uint64_t)1 << 5)
#define WEFT__STREAM_FLAGS ((uint64_t)0xffffffff)
/* There is something to read, or will be. */
#define WEFT__STREAM_GOES_ON (~WEFT__STREAM_FLAGS | WEFT__STREAM_ARMED)

struct weft__stream {
	int32_t fd; /* immutable */
	/* The reader's alone. */
	bool owns;	   /* the descriptor is known to be its */
	bool began;	   /* a request was made */
	bool singly;	   /* each is to complete once */
	uint8_t starved;   /* how often in a row there was no buffer for it */
	bool polls;	   /* its request only tells when something is there; */
	bool put_polls;	   /* that of `going`, when there is room */
	/* The reader's while it is not ARMED, and then of who reaps. */
	uint8_t kind;	/* enum weft__pool_kind: of its pool, and of that */
	uint8_t wants;	/* it is to ask for next */
	bool stops;	/* it is cancelled */
	uint8_t streak; /* pieces in a row that fit the other kind better */
	int32_t said;	/* by the last completion */
	int32_t error;	/* the reader's alone: why it does not send any more */
	weft__atomic(uint64_t) word;
	weft__atomic(uint64_t) reader; /* whom to wake */
	uint32_t came;		       /* pieces so far; wraps */
	weft__atomic(uint32_t) gone;   /* those read; the reader's, others
					  look */
	struct weft__pool *pool;
	struct weft__worker *home; /* whose ring it is in */
	/* The reader's alone. */
	uint32_t head;		       /* + 1; the oldest piece */
	uint32_t head_at;	       /* bytes gone of it */
	char *own;		       /* a buffer, while the pool has none; */
	uint32_t own_bytes;	       /* received into it, */
	uint32_t own_at;	       /* and gone of those */
	struct weft__send_buffer *out;	       /* what was put, */
	struct weft__send_buffer *going; /* and is being sent: see SENDS */
	struct weft__worker *going_in; /* whose ring that is, or was, in */
	weft__atomic(uint64_t) putter; /* who put last; others look */
	/* Its place + 1 in a ring's table of files, under that ring's worker;
	 * the reader's, others look.  0: none. */
	weft__atomic(uint32_t) file;
	bool filed; /* the reader's alone: it was tried */
	weft__atomic(uint16_t) sends; /* tasks that wait in one */
} __attribute__((may_alias));

/* A send under way, on the stack of who waits for it. */
struct weft__sending {
	weft__atomic(uint64_t) word; /* SENDING, or the result */
	uint64_t sender;	     /* a task's id */
	struct weft__worker *from;   /* whose ring it is in */
};

_Static_assert(sizeof(struct weft__stream) <= sizeof(struct weft_stream),
	       "the public struct has room");

static inline struct weft__stream *weft__stream(struct weft_stream *stream)
{
	return (void *)stream->private_words;
}

/* In the user_data of a send; and of one of what was put. */
#define WEFT__SENDING ((uint64_t)1)
#define WEFT__PUTTING ((uint64_t)2)

static inline uint64_t weft__stream_user_data(const struct weft__stream *stream)
{
	return (uint64_t)WEFT__TAG_STREAM << 60 | (uint64_t)(uintptr_t)stream;
}

static inline uint64_t
weft__sending_user_data(const struct weft__sending *sending)
{
	return (uint64_t)WEFT__TAG_STREAM << 60 | (uint64_t)(uintptr_t)sending |
	       WEFT__SENDING;
}

/* A struct weft__stream, or weft__sending. */
static inline void *weft__stream_of(const struct weft__completion *completion)
{
	return (void *)(uintptr_t)(completion->user_data &
				   ~(WEFT__SENDING | WEFT__PUTTING) &
				   (((uint64_t)1 << 60) - 1));
}

/* Pieces that a stream has seen when it is entered into a table of files: it
 * then is as good as paid for. */
enum { WEFT__PIECES_BUSY = 32 };

static inline bool weft__stream_is_busy(const struct weft__stream *stream)
{
	/* relaxed: the reader's own. */
	return !stream->filed &&
	       weft__load(&stream->gone, relaxed) >= WEFT__PIECES_BUSY;
}

void weft__stream_enter_file(struct weft__stream *stream);

/* Before the end, when nothing of it is under way. */
void weft__stream_leave_file(struct weft__stream *stream);

/* The worker << 16, of `file`. */
static inline uint32_t weft__stream_file(const struct weft__worker *worker,
					 uint32_t place)
{
	return worker->index << 16 | (place + 1);
}

/* A request that was prepared for the descriptor, and goes into the ring of
 * `worker`: perhaps it can be named in a shorter way. */
static inline void weft__stream_shorten(const struct weft__stream *stream,
					const struct weft__worker *worker,
					struct io_uring_sqe *sqe)
{
	/* relaxed: the place is held until the stream is closed. */
	uint32_t file = weft__load(&stream->file, relaxed);

	if (!file || file >> 16 != worker->index)
		return;
	sqe->fd = (int32_t)(file & 0xffff) - 1;
	sqe->flags |= IOSQE_FIXED_FILE;
}

/* Suspends the reader until one of `waits` (WEFT__STREAM_WAITS, _DRAINS) is
 * over, if none is; or it is woken for another reason. */
void weft__stream_suspend(struct weft__stream *stream, uint64_t waits,
			  uint64_t reason, uint64_t max_ns);

/* Has the kernel send what was put, unless it is at it; does not wait.  See
 * `error`. */
void weft__stream_push_slow(struct weft__stream *stream, int flags);

static inline void weft__stream_push(struct weft__stream *stream)
{
	/* relaxed: LEFT is looked at anew. */
	if (stream->out ||
	    (weft__load(&stream->word, relaxed) & WEFT__STREAM_LEFT))
		weft__stream_push_slow(stream, 0);
}

/* Waits until all that was put is sent: 0, or why it is not. */
int weft__stream_drain(struct weft__stream *stream, int flags);

/* The same before the end, but then nothing is kept. */
int weft__stream_drain_at_last(struct weft__stream *stream);

/* The same for a send, which may be told at any time. */
static inline uint64_t
weft__sending_complete(const struct weft__completion *completion)
{
	struct weft__sending *sending = weft__stream_of(completion);
	uint64_t sender;

	/* pairs: [stream.armed] */
	(void)weft__load(&sending->word, acquire);
	sender = sending->sender;
	/* pairs: [stream.sent] */
	weft__store(&sending->word, (uint64_t)(uint32_t)completion->result,
		    release);
	return sender;
}

#endif

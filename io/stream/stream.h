/* SPDX-License-Identifier: MIT */
/*
 * Stream - a connection, and the one request that receives for it.
 *
 *	kernel --> completions --> [word: newest piece] --> reader's own list
 *	           in their order   by the reaper, under    oldest first
 *	           (lock held)      the shard's lock
 *
 * The reaper is the worker that takes a completion out of a ring.
 *
 * The word
 *
 *	63           32 31   5    4       3        2       1        0
 *	[ newest piece ][ TURN ][ LEFT ][ DRAINS ][ SENDS ][ WAITS ][ ARMED ]
 *
 *	ARMED	the kernel has the receive request; the last completion clears
 *		it, and then the reader may make the next request
 *	WAITS	the reader suspends until there is something to read; the
 *		reaper that clears the flag wakes the reader
 *	SENDS	the kernel has `going`, until the completion of that send
 *	DRAINS	the reader suspends until that completion (WAITS may be set as
 *		well); the reaper that clears the flag wakes the reader
 *	LEFT	that completion left a part of `going` unsent; `going` is the
 *		reader's again
 *	TURN	counts the waits: the reaper reads which task to wake before
 *		its CAS, and the count makes the CAS fail if another wait has
 *		begun since
 *
 * Pieces are buffers of the pool that the request takes from, linked newest
 * first; the reader takes them all, and reverses the list.
 *
 * Invariants
 *   STR1  The completions of a stream are handled while the shard's lock is
 *       held, so in the order in which they came.
 *   STR2  A reaper touches the stream up to the CAS of its word and no longer:
 *       after the last completion is handled the stream may be closed and its
 *       memory freed.
 *   STR3  A request that completes more than once is submitted by the owner of
 *       the ring under the lock (SH3).
 *   STR4  A request is made only when there is none and nothing is left to
 *       read. So all pieces are of one pool, and data arrives in order.
 *   STR5  Data that was put moves from `out` to `going` when the reader has
 *       nothing to read, or `out` is full, and neither SENDS nor LEFT is set.
 *       So it is sent in order.
 *   STR6  The list of a shard's recent streams is changed under the shard's
 *       lock, and a stream in it is ARMED: the reaper takes it out at the last
 *       completion.
 *
 * Orderings
 *   [stream.notified]  the reaper's CAS, release -> the reader's load or CAS,
 *       acquire: the pieces, and the result of the last completion.
 *   [stream.waits]  the reader's CAS, release -> the reaper's CAS, acquire:
 *       which task to wake.
 *   [stream.sent]  the reaper's store, release -> the sender's load, acquire:
 *       the result.  After the store the sender may have returned.
 *   [stream.armed]  the reader's or sender's store, release -> the reaper's
 *       load, acquire: the fields that describe the request.
 *   Modelled in tests/model/model_stream.c and model_stream_put.c.
 */
#ifndef WEFT_IO_STREAM_STREAM_H
#define WEFT_IO_STREAM_STREAM_H

#include <errno.h>
#include <weft/stream.h>

#include "io/request/recv_buffers.h"
#include "io/request/shard.h"

/* The last completion had no result that concerns the reader. */
#define WEFT__STREAM_SAID_NOTHING (-EINTR)

#define WEFT__STREAM_ARMED ((uint64_t)1 << 0)
#define WEFT__STREAM_WAITS ((uint64_t)1 << 1)
#define WEFT__STREAM_SENDS ((uint64_t)1 << 2)
#define WEFT__STREAM_DRAINS ((uint64_t)1 << 3)
#define WEFT__STREAM_LEFT ((uint64_t)1 << 4)
#define WEFT__STREAM_TURN ((uint64_t)1 << 5)
#define WEFT__STREAM_FLAGS ((uint64_t)0xffffffff)
/* There is something to read, or a request that will bring it. */
#define WEFT__STREAM_GOES_ON (~WEFT__STREAM_FLAGS | WEFT__STREAM_ARMED)

struct weft__stream {
	int32_t fd; /* immutable */
	/* Reader only. */
	bool owns;	 /* `owned` is set in the descriptor's entry */
	bool began;	 /* a request was made */
	bool singly;	 /* each request is to complete once */
	uint8_t starved; /* times in a row that no buffer was free */
	bool polls;	 /* the request only polls for input */
	bool put_polls;	 /* that of `going` polls for room */
	/* Reader's while not ARMED, otherwise the reaper's. */
	uint8_t kind;	/* enum weft__pool_kind: the current pool, */
	uint8_t wants;	/* and the pool to use next */
	bool stops;	/* a cancellation was sent */
	uint8_t streak; /* pieces in a row that fit the other kind better */
	/* Reader only: see over.c. */
	bool reads_over; /* input does not come through requests, */
	bool puts_over;	 /* and what is put does not go through them */
	bool filled;	 /* `own` is large enough for weft__stream_fill() */
	bool recent;	 /* in the list of its shard: STR6 */
	int32_t said;	 /* result of the last completion */
	int32_t error;	 /* reader only: why sending has ended */
	uint32_t looked; /* `came` at the last look: see stream_look.c */
	weft__atomic(uint64_t) word;
	weft__atomic(uint64_t) reader; /* the task to wake */
	uint32_t came;		       /* pieces received; wraps */
	weft__atomic(uint32_t) gone;   /* pieces read; reader writes */
	struct weft__pool *pool;
	struct weft__worker *home; /* the worker whose ring it is in */
	/* Reader only. */
	uint32_t head;			 /* index + 1 of the oldest piece */
	uint32_t head_at;		 /* bytes read of it */
	char *own;			 /* used while the pool has none */
	uint32_t own_bytes;		 /* received into `own` */
	uint32_t own_at;		 /* and read of those */
	struct weft__send_buffer *out;	 /* data that was put */
	struct weft__send_buffer *going; /* being sent: see SENDS */
	struct weft__worker *going_in;	 /* ring of the send of `going` */
	weft__atomic(uint64_t) putter;	 /* last task to put; others read */
	/* The worker's index << 16 | its place + 1 in the table of files of
	 * that worker's ring.  Reader writes, others read.  0: none. */
	weft__atomic(uint32_t) file;
	bool filed;		      /* reader only: a place was asked for */
	weft__atomic(bool) lost;      /* a write has found it so */
	weft__atomic(uint16_t) sends; /* tasks that wait for a send */
	struct weft__gathered *gathered; /* reader only: see until.c */
	/* Immutable: of a stream without a descriptor. */
	const struct weft_stream_ops *ops;
	void *over;
	/* Under the lock of the shard of `home`: STR6. */
	struct weft__stream *recent_next, *recent_previous;
} __attribute__((may_alias));

/* The buffer of a stream that is not over a socket. */
#define WEFT__STREAM_FILL_BYTES 16384u

/* Bytes that came in several pieces and are shown in one; there are some. */
struct weft__gathered {
	const struct weft_allocator *memory; /* where it is from */
	size_t at;			     /* of the oldest */
	size_t bytes;
	size_t room;
	char data[];
};

/* A send in flight, on the stack of the task that waits for it. */
struct weft__sending {
	weft__atomic(uint64_t) word; /* SENDING, or the result */
	uint64_t sender;	     /* id of the task */
	struct weft__worker *from;   /* the worker whose ring it is in */
};

_Static_assert(sizeof(struct weft__stream) <= sizeof(struct weft_stream),
	       "the public struct has room");

static inline struct weft__stream *weft__stream(struct weft_stream *stream)
{
	return (void *)stream->private_words;
}

/* Bits in the user_data of a send, and of a send of data that was put. */
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

/* The struct weft__stream, or weft__sending, that a completion names. */
static inline void *weft__stream_of(const struct weft__completion *completion)
{
	return (void *)(uintptr_t)(completion->user_data &
				   ~(WEFT__SENDING | WEFT__PUTTING) &
				   (((uint64_t)1 << 60) - 1));
}

/* A stream whose reader has read this many pieces gets a place in the ring's
 * table of files: the two system calls for that have probably paid off. */
enum { WEFT__PIECES_BUSY = 32 };

static inline bool weft__stream_is_busy(const struct weft__stream *stream)
{
	/* relaxed: only the reader writes it. */
	return !stream->filed &&
	       weft__load(&stream->gone, relaxed) >= WEFT__PIECES_BUSY;
}

/* ---- The look at quiet streams: stream_look.c ---------------------------- */

/* Between two looks; tests shorten it. */
extern uint64_t weft__stream_look_every_ns;

/* Lock of the shard of `home` held: it has received, or will no more. */
void weft__stream_list(struct weft__stream *stream);
void weft__stream_unlist(struct weft__stream *stream);

/* Owner only, when weft__shard_looks(): looks at some streams. */
void weft__streams_look(struct weft__shard *shard, uint64_t now_ns);

/* How long the owner may sleep until it looks again, at most `wait_ns`; there
 * is a look to come. */
uint64_t weft__streams_look_wait(const struct weft__shard *shard,
				 uint64_t now_ns, uint64_t wait_ns);

void weft__stream_enter_file(struct weft__stream *stream);

/* At the close, when no request of the stream is in flight. */
void weft__stream_leave_file(struct weft__stream *stream);

/* The value of `file` for a place in the worker's ring. */
static inline uint32_t weft__stream_file(const struct weft__worker *worker,
					 uint32_t place)
{
	return worker->index << 16 | (place + 1);
}

/* Names the descriptor by its place in the table of files, if it has one in the
 * ring of `worker`, where the request is going. */
static inline void weft__stream_shorten(const struct weft__stream *stream,
					const struct weft__worker *worker,
					struct weft__request *request)
{
	/* relaxed: the place is held until the stream is closed. */
	uint32_t file = weft__load(&stream->file, relaxed);

	if (!file || file >> 16 != worker->index)
		return;
	request->fd = (int32_t)(file & 0xffff) - 1;
	request->flags |= WEFT__REQUEST_FIXED_FILE;
}

/* Suspends the reader until one of `waits` (WEFT__STREAM_WAITS, _DRAINS) is
 * over, unless one is over already.  The reader may also be woken for another
 * reason. */
void weft__stream_suspend(struct weft__stream *stream, uint64_t waits,
			  uint64_t reason, uint64_t max_ns);

/* Has the kernel send what was put, unless a send is in flight.  Does not wait.
 * Sets `error` on failure. */
void weft__stream_push_slow(struct weft__stream *stream, int flags);

static inline void weft__stream_push(struct weft__stream *stream)
{
	/* relaxed: the slow path loads LEFT again. */
	if (stream->out ||
	    (weft__load(&stream->word, relaxed) & WEFT__STREAM_LEFT))
		weft__stream_push_slow(stream, 0);
}

/* Waits until all that was put is sent.  Returns 0, or why it was not. */
int weft__stream_drain(struct weft__stream *stream, int flags);

/* The same at the close; what could not be sent is dropped. */
int weft__stream_drain_at_last(struct weft__stream *stream);

/* Does an error say that the connection is lost, rather than that a request was
 * refused?  The kernel gives it to one call, and an end from then on, which is
 * not the peer's. */
bool weft__stream_is_lost(const struct weft__stream *stream, int said);

/* ---- Over other things than sockets: over.c ------------------------------ */

/* Waits for input, into the stream's own buffer.  0: there is some, or `said`
 * is the end; or an error. */
int weft__stream_fill(struct weft__stream *stream);

/* Writes, as weft_stream_write_all(). */
int weft__stream_write_over(struct weft__stream *stream, const void *buf,
			    size_t bytes, size_t *ret_done);

/* As weft__stream_push_slow(), but waits, unless weft__stream_fill() will. */
void weft__stream_push_over(struct weft__stream *stream);

/* As weft__stream_drain(). */
int weft__stream_drain_over(struct weft__stream *stream);

/* Waits until there is something behind what was gathered.  1, 0 at the end, or
 * an error. */
int weft__stream_await_more(struct weft__stream *stream);

/* Waits until the first `bytes` are there, and shows all that are, in one piece
 * and at least those: how many; 0 at the end, -ENODATA at an end among them, or
 * an error.  None is taken.  until.c */
ssize_t weft__stream_show_least(struct weft_stream *stream, size_t bytes,
				  const void **ret_data);

/* Sending ends with that error: later data would arrive out of order. */
void weft__stream_put_fail(struct weft__stream *stream, int error);

/* The buffer is sent. */
void weft__stream_put_drop(struct weft__send_buffer **out);

/* Handles the completion of a send.  Returns the task to wake.  The shard's
 * lock need not be held. */
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

/* SPDX-License-Identifier: MIT */
/*
 * Streams: receiving.  stream.h has the model.
 *
 * A reader that finds no piece looks at the state word.  While the request is
 * ARMED it suspends.  Otherwise it takes the result of the last completion
 * (stream_settle()) and makes the next request (stream_arm()):
 *
 *	stream_arm_for_good()  a multishot receive into the pool's buffers
 *	stream_arm_once()      one receive into a buffer of the pool or, if it
 *	                       has none, its own; or a poll if it is nonblocking
 *
 * A stream over something else than a socket has no request: over.c reads.
 *
 * One task at a time reads.  It sends the put data before it suspends.
 */
#include "io/stream/received.h"

#include <poll.h>
#include <string.h>
#include <weft/io.h>

#include "io/os/mask.h"
#include "io/os/syscall.h"
#include "io/request/call.h"
#include "io/request/close.h"
#include "io/ring/memcheck.h"
#include "runtime/base/memory.h"

void weft_stream_init(struct weft_stream *stream, int fd)
{
	*stream = (struct weft_stream)WEFT_STREAM_INIT(fd);
}

int weft_stream_fd(const struct weft_stream *stream)
{
	/* Reads the descriptor alone: a reader may write the fields beside
	 * it. */
	return ((const struct weft__stream *)stream->private_words)->fd;
}

/* ---- The request --------------------------------------------------------- */

static bool stream_take_pool_of(struct weft__worker *worker,
				struct weft__stream *stream, uint8_t kind)
{
	struct weft__shard *shard = weft__shard(worker);
	struct weft__pool *pool = &shard->pools[kind];

	if (stream->kind != kind)
		stream->streak = 0;
	stream->kind = kind;
	stream->home = worker;
	stream->pool = pool;
	stream->stops = false;
	if (!weft__pool_open(pool, &shard->ring, stream->kind))
		return false;
	weft__pool_collect(pool);
	if (stream->starved && !weft__pool_grow(pool, stream->starved > 1))
		return false;
	weft__stream_free_own(stream);
	return true;
}

/* By the reader, while the stream is not ARMED: chooses the pool to receive
 * from.  False: no pool has buffers. */
static bool stream_take_pool(struct weft__worker *worker,
			     struct weft__stream *stream)
{
	if (stream_take_pool_of(worker, stream, stream->wants))
		return true;
	if (stream->wants == WEFT__POOL_SMALL)
		return false;
	/* Streams whose tasks do not read may hold all large buffers. */
	stream->wants = WEFT__POOL_SMALL;
	stream->starved = 0;
	return stream_take_pool_of(worker, stream, stream->wants);
}

static struct weft__request stream_request(struct weft__stream *stream,
					   bool multishot)
{
	struct weft__request request = {
		.opcode = WEFT__OPCODE_RECV,
		.group = stream->pool->group,
		.flags = WEFT__REQUEST_BUFFERS |
			 (multishot ? WEFT__REQUEST_MULTISHOT : 0),
		.fd = stream->fd,
	};

	weft__stream_shorten(stream, stream->home, &request);
	return request;
}

static void stream_set_armed(struct weft__stream *stream)
{
	/* pairs: [stream.armed] */
	weft__or(&stream->word, WEFT__STREAM_ARMED, release);
}

/* The kernel did not take the request. */
static void stream_unset_armed(struct weft__stream *stream)
{
	weft__pool_asked(stream->pool);
	/* relaxed: no thread has the request but the reader's. */
	weft__and(&stream->word, ~WEFT__STREAM_ARMED,
		  relaxed); /* mutate: wake */
}

/* Prepares one receive into a buffer of the stream's own: 0 or -ENOMEM. */
static int stream_own(struct weft__worker *worker, struct weft__stream *stream,
		      struct weft__request *ret_request)
{
	if (!stream->own)
		stream->own = weft__memory_new(worker->runtime->memory,
					       WEFT__POOL_SMALL_BYTES);
	if (!stream->own)
		return -ENOMEM;
	*ret_request = (struct weft__request){
		.opcode = WEFT__OPCODE_RECV,
		.fd = stream->fd,
		.memory = stream->own,
		.bytes = WEFT__POOL_SMALL_BYTES,
	};
	return 0;
}

/* Prepares a poll that completes once, when there is input. */
static void stream_poll(struct weft__worker *worker,
			struct weft__stream *stream,
			struct weft__request *ret_request)
{
	stream->home = worker;
	*ret_request = weft__request_poll(stream->fd, POLLIN);
}

/* Makes a request that completes once.  From the free entry to its publication
 * the task must not be switched. */
static int stream_arm_once(struct weft__stream *stream)
{
	struct weft__worker *worker = weft__op_make_room();
	struct weft__request request;
	int error = 0;

	if (weft__unlikely(stream->polls)) {
		stream_poll(worker, stream, &request);
	} else if (stream_take_pool(worker, stream)) {
		request = stream_request(stream, false);
		weft__pool_ask(stream->pool);
	} else {
		error = stream_own(worker, stream, &request);
	}
	if (error < 0)
		return error;
	weft__ring_prepare(&weft__shard(worker)->ring, &request,
			   weft__stream_user_data(stream));
	stream_set_armed(stream);
	weft__ring_publish(&weft__shard(worker)->ring);
	weft__shard_relieve(weft__shard(worker));
	return 0;
}

/* Makes a request for all further receives; under the shard's lock, so that no
 * helper finds it unsubmitted (SH3).  False: the kernel takes none now. */
static bool stream_arm_for_good(struct weft__worker *worker,
				struct weft__stream *stream)
{
	struct weft__shard *shard = weft__shard(worker);
	struct weft__request request = stream_request(stream, true);
	bool submitted;

	weft__shard_lock(shard);
	weft__pool_ask(stream->pool);
	stream_set_armed(stream);
	submitted = weft__shard_submit(shard, &request,
				       weft__stream_user_data(stream));
	if (!submitted)
		stream_unset_armed(stream);
	/* A worker that was refused the lock tries again if this one is
	 * late. */
	weft__trylock_drop(&shard->lock);
	return submitted;
}

/* Makes the stream the only closer of its descriptor: a close by another would
 * leave the file open, because the request holds it. */
static int stream_own_fd(struct weft__stream *stream)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__fd *entry;
	int error = weft__call_entry(worker, stream->fd, &entry);

	if (error < 0)
		return error;
	weft__lock_take(&entry->lock);
	weft__assert(!entry->owned,
		     "weft_stream: two streams of one descriptor");
	if (entry->closing)
		error = -EBADF;
	else
		entry->owned = true;
	weft__lock_drop(&entry->lock);
	stream->owns = !error;
	/* For a TCP connection every kernel reports the end. */
	stream->singly = weft__is_masked(WEFT__FEATURE_MULTISHOT_RECV) ||
			 (!weft__shard(worker)->ring.reports_ends &&
			  !weft__syscall_is_tcp(stream->fd));
	return error;
}

/* Out of line: its stack frame would lie between the frames in which a reader
 * resumes, on cache lines that are cold by then. */
static __attribute__((noinline)) int stream_arm(struct weft__stream *stream)
{
	struct weft__worker *worker = weft__worker_self();
	int error = stream->owns || stream->ops ? 0 : stream_own_fd(stream);

	if (error < 0)
		return error;
	if (weft__unlikely(stream->reads_over))
		return weft__stream_fill(stream);
	weft__count(worker, WEFT__N_OPS, 1);
	if (stream->singly || !stream_take_pool(worker, stream) ||
	    !stream_arm_for_good(worker, stream))
		error = stream_arm_once(stream);
	if (!error)
		stream->began = true;
	return error;
}

/* ---- Waiting ------------------------------------------------------------- */

static uint64_t stream_reason(const struct weft__stream *stream)
{
	return weft__op_reason(WEFT__OPCODE_RECV, 0, stream->fd);
}

/* Is one of the waits over?  WAITS ends with a piece, with LEFT, and with the
 * end of the request; DRAINS with the end of the send. */
static bool is_over(uint64_t word, uint64_t waits)
{
	if ((waits & WEFT__STREAM_DRAINS) && !(word & WEFT__STREAM_SENDS))
		return true;
	return (waits & WEFT__STREAM_WAITS) &&
	       ((word >> 32) || (word & WEFT__STREAM_LEFT) ||
		!(word & WEFT__STREAM_ARMED));
}

/* False: one of the waits is over already. */
static bool stream_set_waits(struct weft__stream *stream, uint64_t waits)
{
	/* relaxed: decided by the CAS; is_over() looks at each new value. */
	uint64_t old = weft__load(&stream->word, relaxed);
	uint64_t new;

	do {
		if (is_over(old, waits)) /* mutate: recheck */
			return false;
		weft__assert(!(old &
			       (WEFT__STREAM_WAITS | WEFT__STREAM_DRAINS)),
			     "weft_stream: two tasks receive at the same time");
		new = (old & ~WEFT__STREAM_FLAGS) |
		      ((old + WEFT__STREAM_TURN) & WEFT__STREAM_FLAGS) | waits;
		/* pairs: [stream.waits] */
	} while (!weft__cas(&stream->word, &old, new,
			    release)); /* mutate: retry */
	return true;
}

void weft__stream_suspend(struct weft__stream *stream, uint64_t waits,
			  uint64_t reason, uint64_t max_ns)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = worker->current;

	/* relaxed: the CAS in stream_set_waits() publishes it. */
	weft__store(&stream->reader, weft__running_id(task), relaxed);
	if (!stream_set_waits(stream, waits))
		return;
	if (max_ns == UINT64_MAX)
		weft__suspend(worker, reason);
	else
		weft__op_pause(worker, task, reason, max_ns);
	/* relaxed: a look, and the reader loads again.
	 * pairs: [stream.notified] */
	if (weft__load(&stream->word, relaxed) & waits)
		weft__and(&stream->word, ~waits, relaxed);
}

/* Suspends until there is something to read, or the data that was put can be
 * sent. */
static void stream_suspend(struct weft__stream *stream, uint64_t max_ns)
{
	uint64_t waits = WEFT__STREAM_WAITS;

	if (stream->out)
		waits |= WEFT__STREAM_DRAINS; /* mutate: wake */
	weft__stream_suspend(stream, waits, stream_reason(stream), max_ns);
}

/* Data was received into the stream's own buffer. */
static void stream_fill_own(struct weft__stream *stream, uint32_t bytes)
{
	weft__memcheck_received(stream->own, bytes);
	stream->own_bytes = bytes;
	stream->own_at = 0;
	stream->starved = 0;
}

bool weft__stream_is_lost(const struct weft__stream *stream, int said)
{
	switch (said) {
	case -EAGAIN:
	case -EBADF:
	case -EFAULT:
	case -EINVAL:
	case -ENOBUFS:
	case -ENOMEM:
	case -ENOTCONN:
	case -ENOTSOCK:
		return false;
	default:
		return weft__syscall_is_stream(stream->fd);
	}
}

/* There is no request, and nothing to read: handles the result of the last
 * request.  Returns 0 at the end of the stream, 1 to go on, or an error. */
static int stream_settle(struct weft__stream *stream)
{
	int said = stream->said;

	if (!stream->began)
		return 1;
	/* relaxed: a write of this task, or of one that has told it. */
	if (said == 0)
		return weft__load(&stream->lost, relaxed) ? -ECONNRESET : 0;
	stream->said = WEFT__STREAM_SAID_NOTHING;
	if (weft__unlikely(stream->polls)) {
		stream->polls = false;
		if (said > 0)
			return 1;
	}
	if (said > 0) {
		stream_fill_own(stream, (uint32_t)said);
		return 1;
	}
	switch (said) {
	case -ENOBUFS:
		stream->starved++;
		return 1;
	case -ENOTSOCK:
		stream->reads_over = true;
		return 1;
	case -EAGAIN:
		/* The descriptor does not block, so the kernel does not wait
		 * for input, but it can be polled. */
		stream->singly = stream->polls = true;
		return 1;
	default:
		if (weft__op_was_interrupted(said))
			return 1;
		if (weft__stream_is_lost(stream, said))
			stream->said = -ECONNRESET;
		return said;
	}
}

static int stream_await(struct weft__worker *worker,
			struct weft__stream *stream)
{
	struct weft__task *task = worker->current;
	int r;

	weft__wait_begin(worker, task);
	while (!weft__stream_has_more(stream)) {
		weft__stream_push(stream);
		if (weft__unlikely(stream->error))
			return stream->error;
		worker = weft__worker_self();
		/* pairs: [stream.notified] */
		if (weft__load(&stream->word, acquire) & WEFT__STREAM_GOES_ON) {
			/* The scope may have been cancelled before this task
			 * was in it; then no other task wakes this one. */
			r = weft__interrupted(worker, task);
			if (weft__unlikely(r < 0)) /* mutate: recheck */
				return r;
			if (weft__unlikely(weft__stream_is_busy(stream)))
				weft__stream_enter_file(stream);
			stream_suspend(stream, UINT64_MAX);
			continue;
		}
		r = stream_settle(stream);
		if (r <= 0)
			return r;
		r = weft__stream_has_more(stream) ? 0 : stream_arm(stream);
		if (r < 0)
			return r;
	}
	return 1;
}

int weft__stream_await_more(struct weft__stream *stream)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r == 0)
		r = stream_await(worker, stream);
	return r;
}

ssize_t weft_stream_peek(struct weft_stream *stream, const void **ret_data)
{
	struct weft__stream *s = weft__stream(stream);
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (weft__unlikely(r < 0))
		return r;
	if (weft__stream_has_some(s)) {
		(void)weft__call_ready(worker, 0);
	} else {
		r = stream_await(worker, s);
		if (r <= 0)
			return r;
	}
	return (ssize_t)weft__stream_show(s, ret_data);
}

/* SPDX-License-Identifier: MIT */
/*
 * Streams: sending.  Only the stream closes its descriptor, so the requests
 * need not be in the descriptor's list of operations.
 *
 * Each send has a struct weft__sending on the stack of its task.  The reaper
 * stores the result there ([stream.sent]) and wakes the task; the task does not
 * return before it has found the result.
 */
#include <poll.h>
#include <string.h>
#include <weft/io.h>

#include "io/request/call.h"
#include "io/stream/stream.h"

#define SENDING ((uint64_t)1 << 63)

static void send_begin(struct weft__stream *stream,
		       struct weft__sending *sending, const void *buf,
		       size_t bytes)
{
	struct weft__worker *worker = weft__op_make_room();
	struct weft__shard *shard = weft__shard(worker);
	struct weft__request request = {
		.opcode = WEFT__OPCODE_SEND,
		.fd = stream->fd,
		.memory = buf,
		.bytes = weft__bytes(bytes),
		.how = MSG_NOSIGNAL | MSG_WAITALL,
	};

	weft__stream_shorten(stream, worker, &request);
	weft__ring_prepare(&shard->ring, &request,
			   weft__sending_user_data(sending));
	sending->from = worker;
	sending->sender = weft__running_id(worker->current);
	/* pairs: [stream.armed] */
	weft__store(&sending->word, SENDING, release);
	weft__ring_publish(&shard->ring);
	weft__count(worker, WEFT__N_OPS, 1);
	weft__shard_relieve(shard);
}

/* The wait was interrupted.  The task still waits for the completion (OP1 in
 * op.h). */
static void send_cancel(struct weft__worker *worker,
			struct weft__sending *sending, uint64_t reason)
{
	if (weft__shard_cancel(weft__shard(sending->from),
			       weft__sending_user_data(sending)) == 0)
		weft__suspend(worker, reason);
	else
		weft__op_pause(worker, worker->current, reason,
			       WEFT__CANCEL_AGAIN_NS);
}

/* The results of the sends of one write. */
struct progress {
	unsigned tries; /* in a row, the socket was ready but took nothing */
	bool cut;	/* a send of the ring has met an error after a part */
};

/* The result of a send in the kernel.  -EPIPE comes after an end, which is the
 * peer's or this side's own; or after an error that a send has met which
 * returned the bytes before it. */
static ssize_t send_met(struct weft__stream *stream,
			const struct progress *progress, ssize_t r)
{
	/* relaxed: the store publishes nothing. */
	if (weft__unlikely(r < 0) && (r != -EPIPE || progress->cut) &&
	    weft__stream_is_lost(stream, (int)r))
		weft__store(&stream->lost, true, relaxed);
	return r;
}

/* Sends through the ring.  Returns the bytes sent, 0 if the wait was
 * interrupted before any was, or an error. */
static int32_t send_run(struct weft__stream *stream, const void *buf,
			size_t bytes)
{
	uint64_t reason = weft__op_reason(WEFT__OPCODE_SEND, 0, stream->fd);
	struct weft__sending sending;
	struct weft__worker *worker;
	uint64_t word;

	send_begin(stream, &sending, buf, bytes);
	/* pairs: [stream.sent] */
	while ((word = weft__load(&sending.word, acquire)) & SENDING) {
		worker = weft__worker_self();
		if (weft__unlikely(weft__interrupted(worker, worker->current) <
				   0))
			send_cancel(worker, &sending, reason);
		else
			weft__suspend(worker, reason);
	}
	return weft__op_was_interrupted((int32_t)word) ? 0 : (int32_t)word;
}

/* The same.  If the socket does not block, the kernel does not wait for room:
 * then waits until the socket is ready, and returns 0. */
static ssize_t send_wait(struct weft__stream *stream, const void *buf,
			 size_t bytes, struct progress *progress)
{
	struct weft__fd *entry;
	ssize_t r;

	/* relaxed: for an assertion. */
	weft__add(&stream->sends, (uint16_t)1, relaxed);
	r = send_met(stream, progress, send_run(stream, buf, bytes));
	progress->cut = r > 0 && (size_t)r < bytes;
	if (r == -EAGAIN) {
		r = weft__call_entry(weft__worker_self(), stream->fd, &entry);
		if (r == 0)
			r = weft__op_await_ready(stream->fd, entry, POLLOUT,
						 progress->tries++);
		r = r < 0 ? r : 0;
	}
	/* relaxed: as above. */
	weft__sub(&stream->sends, (uint16_t)1, relaxed);
	return r;
}

/* Sends a part, perhaps nothing; or returns an error. */
static ssize_t send_some(struct weft__stream *stream, const void *buf,
			 size_t bytes, struct progress *progress)
{
	struct weft__worker *worker;
	ssize_t r = weft__call_begin(&worker);

	if (weft__unlikely(r < 0))
		return r;
	/* A direct send counts as a wait, too: deadlines and cancellation
	 * apply. */
	weft__wait_begin(worker, worker->current);
	/* Copying a long one takes longer than the call itself, and the data is
	 * in the caches now. */
	if (bytes > WEFT__SEND_BUFFER_BYTES || weft__call_is_direct(worker)) {
		r = weft__syscall_send(stream->fd, buf, bytes, 0);
		if (r != -EAGAIN)
			return weft__call_ready(worker,
						send_met(stream, progress, r));
	}
	return send_wait(stream, buf, bytes, progress);
}

/* Sends what this task has put first.  more: what follows may go with it. */
static int send_put(struct weft__stream *stream, bool more)
{
	struct weft__task *task = weft__running(weft__worker_self());

	/* relaxed: a task only looks whether it finds itself. */
	if (!task ||
	    weft__load(&stream->putter, relaxed) != weft__running_id(task))
		return 0;
	return weft__stream_drain(stream, more ? MSG_MORE : 0);
}

int weft_stream_write_all(struct weft_stream *stream, const void *buf,
			  size_t bytes, size_t *ret_done)
{
	struct weft__stream *s = weft__stream(stream);
	ssize_t n = send_put(s, bytes > 0);
	struct progress progress = { 0 };
	size_t done = 0;

	if (weft__unlikely(n >= 0 && s->ops))
		n = weft__stream_write_over(s, buf, bytes, &done);
	while (n >= 0 && done < bytes) {
		n = send_some(s, (const char *)buf + done, bytes - done,
			      &progress);
		if (n > 0) {
			done += (size_t)n;
			progress.tries = 0;
		} else if (weft__unlikely(n == -ENOTSOCK)) {
			n = weft__stream_write_over(s, buf, bytes, &done);
		}
	}
	if (ret_done)
		*ret_done = done;
	return n < 0 ? (int)n : 0;
}

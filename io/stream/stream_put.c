/* SPDX-License-Identifier: MIT */
/*
 * Streams: data that is put, and sent when the reader has nothing else to do.
 * So the answer to a request needs no wait of its own, and the answers to
 * several requests that came together are sent as one.
 *
 *	out    collects what is put
 *	going  is being sent: SENDS, then LEFT if a part was not sent
 *
 * STR5 in stream.h gives the rule by which `out` becomes `going`.
 */
#include <poll.h>
#include <string.h>
#include <weft/io.h>

#include "io/request/call.h"
#include "io/stream/stream.h"

static struct weft__send_buffers *outs_here(void)
{
	return &weft__shard(weft__worker_self())->outs;
}

static uint64_t put_user_data(const struct weft__stream *stream)
{
	return weft__stream_user_data(stream) | WEFT__PUTTING;
}

/* As far as is known, a part of what was put is not sent. */
static bool has_unsent(struct weft__stream *stream)
{
	/* pairs: [stream.notified] */
	uint64_t word = weft__load(&stream->word, acquire);

	return stream->out || (stream->puts_over && stream->going) ||
	       (word & (WEFT__STREAM_SENDS | WEFT__STREAM_LEFT));
}

/* ---- The send ------------------------------------------------------------ */

void weft__stream_put_drop(struct weft__send_buffer **out)
{
	if (*out)
		weft__send_buffer_drop(outs_here(), *out);
	*out = NULL;
}

void weft__stream_put_fail(struct weft__stream *stream, int error)
{
	stream->error = error;
	weft__stream_put_drop(&stream->going);
	weft__stream_put_drop(&stream->out);
}

static struct weft__request put_request(const struct weft__stream *stream,
					int flags)
{
	const struct weft__send_buffer *out = stream->going;

	if (weft__unlikely(stream->put_polls))
		return weft__request_poll(stream->fd, POLLOUT);
	return (struct weft__request){
		.opcode = WEFT__OPCODE_SEND,
		.fd = stream->fd,
		.memory = out->data + out->at,
		.bytes = out->bytes - out->at,
		.how = (uint32_t)(MSG_NOSIGNAL | MSG_WAITALL | flags),
	};
}

static void put_begin(struct weft__stream *stream, int flags)
{
	struct weft__worker *worker = weft__op_make_room();
	struct weft__shard *shard = weft__shard(worker);
	struct weft__request request = put_request(stream, flags);

	weft__stream_shorten(stream, worker, &request);
	weft__ring_prepare(&shard->ring, &request, put_user_data(stream));
	stream->going_in = worker;
	/* pairs: [stream.armed] */
	weft__or(&stream->word, WEFT__STREAM_SENDS, release);
	weft__ring_publish(&shard->ring);
	weft__count(worker, WEFT__N_OPS, 1);
	weft__shard_relieve(shard);
}

/* Sends with a system call.  False: there is more to send. */
static bool put_direct(struct weft__stream *stream, int flags)
{
	struct weft__send_buffer *out = stream->going;
	ssize_t n = weft__syscall_send(stream->fd, out->data + out->at,
				       out->bytes - out->at, flags);

	/* The next operation of this run looks at the clock. */
	weft__charge_ops(weft__worker_self(), 1);
	if (weft__unlikely(n == -ENOTSOCK)) {
		stream->puts_over = true;
		return false;
	}
	if (n < 0 && n != -EAGAIN) {
		weft__stream_put_fail(stream, (int)n);
		return true;
	}
	if (n > 0)
		out->at += (uint32_t)n;
	if (out->at < out->bytes)
		return false;
	weft__stream_put_drop(&stream->going);
	return true;
}

/* The last send left a part.  `said` is an error, or the bytes it did send. */
static void put_settle(struct weft__stream *stream)
{
	int32_t said = stream->going->said;
	bool polled = stream->put_polls;

	/* relaxed: only the reader changes LEFT until it sends again. */
	weft__and(&stream->word, ~WEFT__STREAM_LEFT, relaxed);
	/* The descriptor does not block, so the kernel does not wait for room,
	 * but it can be polled. */
	stream->put_polls = said == -EAGAIN;
	stream->puts_over = said == -ENOTSOCK;
	if ((polled && said > 0) || stream->puts_over)
		return;
	if (said > 0)
		stream->going->at += (uint32_t)said; /* mutate: wake */
	else if (said != -EAGAIN && !weft__op_was_interrupted(said))
		weft__stream_put_fail(stream, said < 0 ? said : -EPIPE);
}

void weft__stream_push_slow(struct weft__stream *stream, int flags)
{
	/* pairs: [stream.notified] */
	uint64_t word = weft__load(&stream->word, acquire);

	if (word & WEFT__STREAM_SENDS) /* mutate: recheck */
		return;
	if (word & WEFT__STREAM_LEFT) {
		put_settle(stream);
	} else if (!stream->puts_over) {
		stream->going = stream->out;
		stream->out = NULL;
	}
	if (!stream->going && !stream->puts_over)
		return;
	if (!stream->puts_over && !stream->put_polls &&
	    weft__call_is_direct(weft__worker_self()) &&
	    put_direct(stream, flags))
		return;
	if (weft__unlikely(stream->puts_over))
		weft__stream_push_over(stream);
	else
		put_begin(stream, flags);
}

/* ---- Waiting ------------------------------------------------------------- */

/* Waits until the send in flight has ended; 0, -ECANCELED, -ETIMEDOUT. */
static int put_await(struct weft__stream *stream)
{
	struct weft__worker *worker = weft__worker_self();
	int r;

	/* pairs: [stream.notified] */
	if (!(weft__load(&stream->word, acquire) & WEFT__STREAM_SENDS))
		return 0;
	r = weft__interrupted(worker, worker->current);
	if (weft__unlikely(r < 0)) /* mutate: recheck */
		return r;
	weft__stream_suspend(stream, WEFT__STREAM_DRAINS,
			     weft__op_reason(WEFT__OPCODE_SEND, 0, stream->fd),
			     UINT64_MAX);
	return 0;
}

int weft__stream_drain(struct weft__stream *stream, int flags)
{
	int r = 0;

	if (has_unsent(stream))
		weft__wait_begin(weft__worker_self(),
				 weft__worker_self()->current);
	while (has_unsent(stream)) {
		if (weft__unlikely(stream->puts_over))
			return weft__stream_drain_over(stream);
		weft__stream_push_slow(stream, flags);
		r = put_await(stream);
		if (r < 0)
			return r;
	}
	return stream->error;
}

/* Has the send cancelled, and waits until it has ended. */
static void put_cancel(struct weft__stream *stream)
{
	/* pairs: [stream.notified] */
	while (weft__load(&stream->word, acquire) & WEFT__STREAM_SENDS) {
		int r = weft__shard_cancel(weft__shard(stream->going_in),
					   put_user_data(stream));

		weft__stream_suspend(
			stream, WEFT__STREAM_DRAINS,
			weft__op_reason(WEFT__OPCODE_SEND, 0, stream->fd),
			r == 0 ? UINT64_MAX : WEFT__CANCEL_AGAIN_NS);
	}
}

/* Sends what no request holds any more, as much as there is room for. */
static bool put_rest(struct weft__stream *stream,
		     struct weft__send_buffer **out)
{
	struct weft__send_buffer *rest = *out;
	ssize_t n;

	if (!rest)
		return true;
	n = weft__syscall_send(stream->fd, rest->data + rest->at,
			       rest->bytes - rest->at, 0);
	return n == (ssize_t)(rest->bytes - rest->at);
}

/* A task that is interrupted does not wait, but sends what can be sent
 * immediately. */
static bool put_last(struct weft__stream *stream)
{
	put_cancel(stream); /* mutate: wake */
	if (stream->going && !stream->put_polls && stream->going->said > 0)
		stream->going->at += (uint32_t)stream->going->said;
	/* relaxed: only the reader changes LEFT now. */
	weft__and(&stream->word, ~WEFT__STREAM_LEFT, relaxed);
	return !stream->puts_over && put_rest(stream, &stream->going) &&
	       put_rest(stream, &stream->out);
}

int weft__stream_drain_at_last(struct weft__stream *stream)
{
	struct weft__worker *worker = weft__worker_self();
	int r = stream->error;

	if (!has_unsent(stream))
		return r;
	r = weft__interrupted(worker, worker->current);
	if (r == 0)
		r = weft__stream_drain(stream, 0);
	if (r < 0 && !stream->error && put_last(stream))
		r = 0;
	weft__stream_put_drop(&stream->going);
	weft__stream_put_drop(&stream->out);
	return r;
}

/* ---- The calls ----------------------------------------------------------- */

static bool has_room(const struct weft__send_buffer *out, size_t bytes)
{
	return bytes <= WEFT__SEND_BUFFER_BYTES - out->bytes;
}

/* Makes sure that `out` has room for `bytes`.  Returns 1, 0 if there is no
 * memory, or an error. */
static int put_make_room(struct weft__stream *stream, size_t bytes)
{
	struct weft__worker *worker = weft__worker_self();
	int r = 0;

	while (stream->out && !has_room(stream->out, bytes)) {
		weft__wait_begin(worker, worker->current);
		if (weft__unlikely(stream->puts_over))
			r = weft__stream_drain_over(stream);
		else
			weft__stream_push_slow(stream, MSG_MORE);
		if (!stream->puts_over)
			r = stream->out ? put_await(stream) : 0;
		if (r < 0)
			return r;
		worker = weft__worker_self();
	}
	if (stream->error)
		return stream->error;
	if (!stream->out)
		stream->out = weft__send_buffer_take(outs_here());
	return stream->out != NULL;
}

/* Sends data that is too long for a buffer, or for which there is none.  An
 * error that ends this send ends all sending of data that was put. */
static int put_through(struct weft_stream *stream, const void *buf,
		       size_t bytes)
{
	int r = weft_stream_write_all(stream, buf, bytes, NULL);

	if (r < 0 && r != -ECANCELED && r != -ETIMEDOUT)
		weft__stream(stream)->error = r;
	return r;
}

int weft_stream_put(struct weft_stream *stream, const void *buf, size_t bytes)
{
	struct weft__stream *s = weft__stream(stream);
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (weft__unlikely(r < 0))
		return r;
	if (weft__unlikely(s->error || !bytes))
		return s->error;
	/* relaxed: a task only looks whether it finds itself. */
	weft__store(&s->putter, weft__running_id(worker->current), relaxed);
	if (bytes > WEFT__SEND_BUFFER_BYTES)
		return put_through(stream, buf, bytes);
	if (!s->out || weft__unlikely(!has_room(s->out, bytes))) {
		r = put_make_room(s, bytes);
		if (weft__unlikely(r <= 0))
			return r < 0 ? r : put_through(stream, buf, bytes);
	}
	memcpy(s->out->data + s->out->bytes, buf, bytes);
	s->out->bytes += (uint32_t)bytes;
	return 0;
}

int weft_stream_putv(struct weft_stream *stream, const struct iovec *iov,
		     int count)
{
	int r = count < 0 ? (int)weft__call_refused(-EINVAL) : 0;

	for (int i = 0; r == 0 && i < count; i++)
		r = weft_stream_put(stream, iov[i].iov_base, iov[i].iov_len);
	return r;
}

int weft_stream_flush(struct weft_stream *stream)
{
	struct weft__stream *s = weft__stream(stream);
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r == 0)
		r = weft__stream_drain(s, 0);
	if (r < 0)
		return r;
	/* relaxed: the store publishes nothing. */
	weft__store(&s->putter, 0, relaxed);
	return (int)weft__call_ready(weft__worker_self(), 0);
}

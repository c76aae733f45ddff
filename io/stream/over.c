/* SPDX-License-Identifier: MIT */
/*
 * Streams over other things than sockets: a pipe, a terminal, a file, which the
 * first request finds out, and a table of operations.  Input is read when it is
 * asked for, and the task that waits writes the bytes that were put.
 */
#include <weft/io.h>

#include "io/request/call.h"
#include "io/stream/received.h"

void weft_stream_init_over(struct weft_stream *stream,
			   const struct weft_stream_ops *ops, void *arg)
{
	weft_stream_init(stream, -1);
	weft__stream(stream)->ops = ops;
	weft__stream(stream)->over = arg;
	weft__stream(stream)->reads_over = true;
	weft__stream(stream)->puts_over = true;
}

/* ---- Input --------------------------------------------------------------- */

/* Operations that do not wait count as a wait all the same: so deadlines apply,
 * and others have their turn. */
static ssize_t ops_read(struct weft__stream *stream)
{
	ssize_t n = -EBADF;

	if (stream->ops->read)
		n = stream->ops->read(stream->over, stream->own,
				      WEFT__STREAM_FILL_BYTES);
	return weft__call_ready(weft__worker_self(), n);
}

static ssize_t read_over(struct weft__stream *stream)
{
	return stream->ops ? ops_read(stream) :
			     weft_read(stream->fd, stream->own,
				       WEFT__STREAM_FILL_BYTES);
}

/* Waits for input without a buffer, where the operations can. */
static int fill_wait(struct weft__stream *stream)
{
	if (!stream->ops || !stream->ops->wait)
		return 0;
	weft__stream_free_own(stream);
	return stream->ops->wait(stream->over);
}

static int fill(struct weft__stream *stream)
{
	ssize_t n = fill_wait(stream);

	if (n < 0)
		return (int)n;
	/* The buffer of the first request may be smaller. */
	if (!stream->filled) {
		weft__stream_free_own(stream);
		stream->own = weft__memory_new(weft__stream_memory(),
					       WEFT__STREAM_FILL_BYTES);
		stream->filled = stream->own != NULL;
	}
	if (!stream->filled)
		return -ENOMEM;
	n = read_over(stream);
	if (n < 0)
		return (int)n;
	weft__assert(n <= (ssize_t)WEFT__STREAM_FILL_BYTES,
		     "weft_stream_ops.read: more bytes than there is room for");
	stream->own_bytes = (uint32_t)n;
	stream->own_at = 0;
	stream->began = true;
	stream->said = n ? WEFT__STREAM_SAID_NOTHING : 0;
	return 0;
}

static int drain(struct weft__stream *stream)
{
	return weft__stream_drain(stream, 0);
}

/* False: it was not over in a short while.  Then *ret_r is 0, or why the caller
 * is to stop. */
static bool run_shortly(int (*run)(struct weft__stream *stream),
			struct weft__stream *stream, weft_nsec max_ns,
			int *ret_r)
{
	bool passed = false;
	int r = 0;

	WEFT_WITHIN (max_ns) {
		r = run(stream);
		passed = (r == -ETIMEDOUT || r == -ECANCELED) &&
			 weft_deadline_passed();
	}
	*ret_r = passed ? weft_yield() : r;
	return !passed;
}

/* Neither the input nor the output alone may be what the peer waits for, and
 * another task that writes may be in the way of what was put: looks at both in
 * turn, not so long at the output that the input would be slow.  As fill(), or
 * -EAGAIN: look again. */
static int fill_or_drain(struct weft__stream *stream)
{
	int r;

	if (run_shortly(drain, stream, WEFT_US(100), &r) || r < 0)
		return r < 0 ? r : fill(stream);
	return run_shortly(fill, stream, WEFT_MS(5), &r) || r < 0 ? r : -EAGAIN;
}

static bool can_wait(const struct weft__stream *stream)
{
	return stream->ops && stream->ops->wait;
}

int weft__stream_fill(struct weft__stream *stream)
{
	bool waits = can_wait(stream);
	int r;

	do {
		if (waits && (stream->out || stream->going)) {
			r = fill_or_drain(stream);
			continue;
		}
		/* A send in the ring, before it was known that there are none,
		 * would not wake this task. */
		r = drain(stream);
		if (r == 0)
			r = fill(stream);
	} while (r == -EAGAIN && waits);
	return r;
}

/* ---- Output -------------------------------------------------------------- */

static int ops_write_all(struct weft__stream *stream, const void *buf,
			 size_t bytes, size_t *ret_done)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	*ret_done = 0;
	if (r == 0 && !stream->ops->write_all)
		r = -EBADF;
	if (r < 0)
		return r;
	weft__wait_begin(worker, worker->current);
	r = stream->ops->write_all(stream->over, buf, bytes, ret_done);
	(void)weft__call_ready(weft__worker_self(), (ssize_t)*ret_done);
	return r;
}

int weft__stream_write_over(struct weft__stream *stream, const void *buf,
			    size_t bytes, size_t *ret_done)
{
	return stream->ops ? ops_write_all(stream, buf, bytes, ret_done) :
			     weft_write_all(stream->fd, buf, bytes, ret_done);
}

/* Writes a buffer, and drops it when it is done. */
static int put_over(struct weft__stream *stream, struct weft__send_buffer **out)
{
	struct weft__send_buffer *buffer = *out;
	size_t done;
	int r;

	if (!buffer)
		return 0;
	r = weft__stream_write_over(stream, buffer->data + buffer->at,
				    buffer->bytes - buffer->at, &done);
	buffer->at += (uint32_t)done;
	if (r == 0)
		weft__stream_put_drop(out);
	return r;
}

int weft__stream_drain_over(struct weft__stream *stream)
{
	int r = stream->error;

	if (r == 0)
		r = put_over(stream, &stream->going);
	if (r == 0)
		r = put_over(stream, &stream->out);
	if (r < 0 && r != -ECANCELED && r != -ETIMEDOUT)
		weft__stream_put_fail(stream, r);
	return r;
}

void weft__stream_push_over(struct weft__stream *stream)
{
	bool ended = stream->began && stream->said == 0;

	if (!can_wait(stream) || ended)
		(void)weft__stream_drain_over(stream);
}

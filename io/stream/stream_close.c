/* SPDX-License-Identifier: MIT */
/*
 * Streams: closing.
 */
#include <weft/io.h>

#include "io/request/call.h"
#include "io/request/close.h"
#include "io/stream/received.h"

static void stream_disown_fd(struct weft__stream *stream)
{
	struct weft__reactor *reactor =
		weft__reactor(weft__worker_self()->runtime);
	struct weft__fd *entry = weft__fd_find(&reactor->fds, stream->fd);

	weft__lock_take(&entry->lock);
	entry->owned = false;
	weft__lock_drop(&entry->lock);
	stream->owns = false;
}

static void stream_drop_all(struct weft__stream *stream)
{
	while (stream->head || weft__stream_take(stream))
		weft__stream_drop(stream);
}

/* Has the request cancelled, and waits until it has ended. */
static void stream_disarm(struct weft__stream *stream)
{
	/* pairs: [stream.notified] */
	while (weft__load(&stream->word, acquire) & WEFT__STREAM_ARMED) {
		int r = weft__shard_cancel(weft__shard(stream->home),
					   weft__stream_user_data(stream));

		stream_drop_all(stream);
		weft__stream_suspend(
			stream, WEFT__STREAM_WAITS,
			weft__op_reason(WEFT__OPCODE_RECV, 0, stream->fd),
			r == 0 ? UINT64_MAX : WEFT__CANCEL_AGAIN_NS);
	}
	stream_drop_all(stream); /* mutate: wake */
}

/* A connection is closed with a system call.  Any other descriptor may have
 * data to write back. */
static int stream_close_fd(const struct weft__stream *stream)
{
	int r;

	if (stream->ops)
		return stream->ops->close ? stream->ops->close(stream->over) :
					    0;
	if (!stream->began || stream->singly || stream->reads_over)
		return weft_close(stream->fd);
	r = weft__socket_close(stream->fd);
	(void)weft__call_ready(weft__worker_self(), WEFT__CLOSE_AS_BYTES);
	return r;
}

int weft_stream_close(struct weft_stream *stream)
{
	struct weft__stream *s = weft__stream(stream);
	int unsent, r;

	if (!weft__running(weft__worker_self()))
		return -EPERM;
	if (!s->ops &&
	    weft__reactor_is_elsewhere(
		    weft__reactor(weft__worker_self()->runtime), s->fd))
		return -EBUSY;
	/* That task would go on with the next file that gets the number.
	 * relaxed: for an assertion. */
	weft__assert(weft__load(&s->sends, relaxed) == 0,
		     "weft_stream_close: another task is sending");
	unsent = weft__stream_drain_at_last(s);
	stream_disarm(s);
	weft__stream_leave_file(s);
	weft__stream_free_own(s);
	weft__stream_free_gathered(s);
	if (s->owns)
		stream_disown_fd(s);
	r = stream_close_fd(s);
	return unsent < 0 ? unsent : r;
}

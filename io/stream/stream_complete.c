/* SPDX-License-Identifier: MIT */
/*
 * Streams: the handling of their completions, with the shard's lock held.
 *
 * A receive adds its piece to the list in the state word, a send of what was
 * put clears SENDS, and a send of weft_stream_write_all() stores its result.
 * The CAS (or store) is the last access to the stream (STR2); the task that it
 * finds waiting is returned, and woken after the lock was dropped.
 */
#include "io/request/upcalls.h"
#include "io/ring/memcheck.h"
#include "io/stream/stream.h"

enum {
	STREAK_LARGE = 4,  /* full small pieces, then large ones */
	STREAK_SMALL = 64, /* large ones with little in them: vice versa */
};

/* At this many pieces that were not read, the request is stopped, and the
 * kernel keeps the rest. */
static const uint32_t held_max[WEFT__POOLS] = { 64, 8 };

/* Would pieces of the other kind fit the stream better? */
static bool is_misfit(struct weft__stream *stream, uint32_t bytes)
{
	bool large = stream->kind == WEFT__POOL_LARGE;
	bool misfit = large ? bytes <= WEFT__POOL_SMALL_BYTES :
			      bytes == WEFT__POOL_SMALL_BYTES;

	stream->streak = misfit ? stream->streak + 1 : 0;
	return stream->streak >= (large ? STREAK_SMALL : STREAK_LARGE);
}

static bool is_full(struct weft__stream *stream)
{
	/* relaxed: an estimate; meanwhile the number of unread pieces only
	 * falls. */
	return stream->came - weft__load(&stream->gone, relaxed) >=
	       held_max[stream->kind];
}

/* Cancels the request if it is to end.  If it cannot be cancelled now, it has
 * ended, or its next completion leads here again. */
static void stream_watch(struct weft__stream *stream, uint32_t bytes, bool last)
{
	bool misfit = is_misfit(stream, bytes);

	if (misfit)
		stream->wants = stream->kind == WEFT__POOL_LARGE ?
					WEFT__POOL_SMALL :
					WEFT__POOL_LARGE;
	if (last || stream->stops || (!misfit && !is_full(stream)))
		return;
	stream->stops = weft__ring_cancel(&weft__shard(stream->home)->ring,
					  weft__stream_user_data(stream)) == 0;
}

/* The piece that was received, as its index + 1, or 0. */
static uint32_t stream_receive(struct weft__stream *stream,
			       const struct weft__completion *completion)
{
	struct weft__pool *pool = stream->pool;
	uint32_t piece = completion->flags >> WEFT__COMPLETION_BUFFER_SHIFT;
	uint32_t bytes =
		completion->result > 0 ? (uint32_t)completion->result : 0;

	if (!(completion->flags & WEFT__COMPLETION_BUFFER))
		return 0;
	weft__pool_took(pool, piece, bytes);
	if (!bytes) {
		weft__pool_give_back(pool, piece); /* mutate: wake */
		return 0;
	}
	weft__memcheck_received(weft__pool_at(pool, piece), bytes);
	stream->came++;
	stream_watch(stream, bytes,
		     !(completion->flags & WEFT__COMPLETION_MORE));
	return piece + 1;
}

/* The reaper's last access to the stream (STR2).  Returns the task to wake, or
 * 0. */
static uint64_t stream_tell(struct weft__stream *stream, uint32_t newest,
			    bool last)
{
	struct weft__piece *piece =
		newest ? &stream->pool->pieces[newest - 1] : NULL;
	/* pairs: [stream.waits] */
	uint64_t old = weft__load(&stream->word, acquire);
	uint64_t next, reader;

	do {
		next = old & ~WEFT__STREAM_WAITS;
		if (last)
			next &= ~WEFT__STREAM_ARMED;
		if (piece) {
			piece->next = (uint32_t)(old >> 32);
			next = (next & WEFT__STREAM_FLAGS) | (uint64_t)newest
								     << 32;
		}
		/* relaxed: it was stored before WAITS was set. */
		reader = old & WEFT__STREAM_WAITS ?
				 weft__load(&stream->reader, relaxed) :
				 0;
		/* pairs: [stream.notified], [stream.waits] */
	} while (!weft__cas_acquire(&stream->word, &old, next,
				    acq_rel)); /* mutate: retry */
	return reader;
}

/* Keeps the list of the shard: the stream has received, or will no more. */
static __attribute__((noinline)) void stream_note(struct weft__stream *stream,
						  bool last)
{
	if (last)
		weft__stream_unlist(stream);
	else if (weft__shard(stream->home)->ring.loses_resets)
		weft__stream_list(stream);
}

static uint64_t stream_received(struct weft__stream *stream,
				const struct weft__completion *completion)
{
	bool last = !(completion->flags & WEFT__COMPLETION_MORE);
	uint32_t newest;

	/* pairs: [stream.armed] */
	(void)weft__load(&stream->word, acquire);
	newest = stream_receive(stream, completion);
	if (last ? stream->recent : newest && !stream->recent)
		stream_note(stream, last);
	if (last && !stream->own && !stream->polls)
		weft__pool_asked(stream->pool);
	if (last)
		stream->said =
			newest ? WEFT__STREAM_SAID_NOTHING : completion->result;
	return stream_tell(stream, newest, last);
}

/* Data that was put is sent.  If a part is left, the reader is woken whether it
 * waits to read or to drain, and sends the rest. */
static uint64_t stream_sent(struct weft__send_buffers *outs,
			    struct weft__stream *stream, int32_t result)
{
	/* pairs: [stream.armed] */
	uint64_t old = weft__load(&stream->word, acquire);
	struct weft__send_buffer *out = stream->going;
	bool all =
		!stream->put_polls && result == (int32_t)(out->bytes - out->at);
	uint64_t wakes = WEFT__STREAM_DRAINS | (all ? 0 : WEFT__STREAM_WAITS);
	uint64_t next, reader;

	if (all)
		stream->going = NULL;
	else
		out->said = result;
	do {
		next = old & ~(WEFT__STREAM_SENDS | wakes);
		if (!all)
			next |= WEFT__STREAM_LEFT; /* mutate: wake */
		/* relaxed: it was stored before the flags were set. */
		reader = old & wakes ? weft__load(&stream->reader, relaxed) : 0;
		/* pairs: [stream.notified], [stream.waits] */
	} while (!weft__cas_acquire(&stream->word, &old, next,
				    acq_rel)); /* mutate: retry */
	if (all)
		weft__send_buffer_drop(outs, out);
	return reader;
}

uint64_t weft__stream_complete(struct weft__worker *worker,
			       const struct weft__completion *completion)
{
	struct weft__stream *stream = weft__stream_of(completion);

	if (completion->user_data & WEFT__SENDING)
		return weft__sending_complete(completion);
	if (completion->user_data & WEFT__PUTTING)
		return stream_sent(&weft__shard(worker)->outs, stream,
				   completion->result);
	return stream_received(stream, completion);
}

/* SPDX-License-Identifier: MIT */
/*
 * Received - what a stream has for its reader, oldest first: bytes gathered
 * from several pieces (until.c), then pieces of the pool, or else the stream's
 * own buffer.  Reader only.
 */
#ifndef WEFT_IO_STREAM_RECEIVED_H
#define WEFT_IO_STREAM_RECEIVED_H

#include "io/stream/stream.h"
#include "runtime/base/memory.h"
#include "runtime/sched/runtime.h"

static inline const struct weft_allocator *weft__stream_memory(void)
{
	return weft__worker_self()->runtime->memory;
}

static inline void weft__stream_free_own(struct weft__stream *stream)
{
	weft__memory_free(weft__stream_memory(), stream->own,
			  stream->filled ? WEFT__STREAM_FILL_BYTES :
					   WEFT__POOL_SMALL_BYTES);
	stream->own = NULL;
	stream->filled = false;
}

static inline void weft__stream_free_gathered(struct weft__stream *stream)
{
	struct weft__gathered *gathered = stream->gathered;

	if (gathered)
		weft__memory_free(gathered->memory, gathered,
				  sizeof(*gathered) + gathered->room);
	stream->gathered = NULL;
}

/* Takes the pieces that have come, and reverses their order; only when the
 * reader has none. */
static inline bool weft__stream_take(struct weft__stream *stream)
{
	struct weft__piece *pieces;
	uint32_t newest, next;
	/* relaxed: decided by the CAS. */
	uint64_t old = weft__load(&stream->word, relaxed);

	if (!(old >> 32))
		return false;
	/* pairs: [stream.notified] */
	while (!weft__cas(&stream->word, &old, old & WEFT__STREAM_FLAGS,
			  acquire)) /* mutate: retry */
		;
	pieces = stream->pool->pieces;
	for (newest = (uint32_t)(old >> 32); newest; newest = next) {
		next = pieces[newest - 1].next;
		pieces[newest - 1].next = stream->head;
		stream->head = newest;
	}
	stream->starved = 0;
	return true;
}

/* Is there something behind what was gathered? */
static inline bool weft__stream_has_more(struct weft__stream *stream)
{
	return stream->head || stream->own_at < stream->own_bytes ||
	       weft__stream_take(stream);
}

static inline bool weft__stream_has_some(struct weft__stream *stream)
{
	return weft__stream_has_more(stream) || stream->gathered;
}

/* The first of what is behind what was gathered. */
static inline size_t weft__stream_show_more(struct weft__stream *stream,
					    const void **ret_data)
{
	uint32_t piece = stream->head - 1;

	if (!stream->head) {
		*ret_data = stream->own + stream->own_at;
		return stream->own_bytes - stream->own_at;
	}
	*ret_data =
		(char *)weft__pool_at(stream->pool, piece) + stream->head_at;
	return stream->pool->pieces[piece].bytes - stream->head_at;
}

/* There is something. */
static inline size_t weft__stream_show(struct weft__stream *stream,
				       const void **ret_data)
{
	if (weft__unlikely(stream->gathered != NULL)) {
		*ret_data = stream->gathered->data + stream->gathered->at;
		return stream->gathered->bytes - stream->gathered->at;
	}
	return weft__stream_show_more(stream, ret_data);
}

/* The oldest piece was read. */
static inline void weft__stream_drop(struct weft__stream *stream)
{
	struct weft__pool *pool = stream->pool;
	uint32_t piece = stream->head - 1;

	stream->head = pool->pieces[piece].next;
	stream->head_at = 0;
	/* relaxed: others take it as an estimate. */
	weft__store(&stream->gone, weft__load(&stream->gone, relaxed) + 1,
		    relaxed);
	if (weft__worker_self() == stream->home) /* mutate: recheck=true */
		weft__pool_give(pool, piece);
	else
		weft__pool_give_back(pool, piece);
}

static inline void weft__stream_skip_more(struct weft__stream *stream,
					  size_t bytes)
{
	if (!stream->head) {
		stream->own_at += (uint32_t)bytes;
		return;
	}
	stream->head_at += (uint32_t)bytes;
	if (stream->head_at == stream->pool->pieces[stream->head - 1].bytes)
		weft__stream_drop(stream);
}

/* Bytes that weft__stream_show() shows. */
static inline void weft__stream_skip(struct weft__stream *stream, size_t bytes)
{
	struct weft__gathered *gathered = stream->gathered;

	if (weft__likely(!gathered)) {
		weft__stream_skip_more(stream, bytes);
		return;
	}
	gathered->at += bytes;
	if (gathered->at == gathered->bytes)
		weft__stream_free_gathered(stream);
}

#endif

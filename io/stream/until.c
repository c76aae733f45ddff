/* SPDX-License-Identifier: MIT */
/*
 * Streams: input up to a delimiter.
 *
 * The bytes shown are contiguous.  A piece with the delimiter is shown in
 * place; otherwise the pieces are gathered in a buffer, which is freed when its
 * bytes are skipped.
 */
#include <string.h>

#include "io/request/call.h"
#include "io/stream/received.h"

enum { GATHERED_MIN = 512 };

/* ---- Gathering ----------------------------------------------------------- */

/* Makes room for more bytes.  False: no memory. */
static bool gathered_grow(struct weft__stream *stream, size_t more)
{
	struct weft__gathered *old = stream->gathered, *grown;
	size_t bytes = old ? old->bytes - old->at : 0;
	size_t room = old ? old->room : GATHERED_MIN;

	if (old && old->room - old->bytes >= more)
		return true;
	while (room - bytes < more)
		room *= 2;
	grown = weft__memory_new(weft__stream_memory(), sizeof(*grown) + room);
	if (!grown)
		return false;
	*grown = (struct weft__gathered){
		.memory = weft__stream_memory(),
		.bytes = bytes,
		.room = room,
	};
	if (old)
		memcpy(grown->data, old->data + old->at, bytes);
	weft__stream_free_gathered(stream);
	stream->gathered = grown;
	return true;
}

/* Gathers what has come next, `max` bytes at most; waits for it.  1, 0 at the
 * end, or an error. */
static int gather(struct weft__stream *stream, size_t max)
{
	const void *data;
	size_t bytes;
	int r = weft__stream_has_more(stream) ? 1 :
						weft__stream_await_more(stream);

	if (r <= 0)
		return r;
	bytes = weft__stream_show_more(stream, &data);
	if (bytes > max)
		bytes = max;
	if (!gathered_grow(stream, bytes))
		return -ENOMEM;
	memcpy(stream->gathered->data + stream->gathered->bytes, data, bytes);
	stream->gathered->bytes += bytes;
	weft__stream_skip_more(stream, bytes);
	return 1;
}

/* ---- Searching ----------------------------------------------------------- */

/* Looks for the delimiter in the first `max` bytes of data, of which `seen`
 * were searched before.  Returns the bytes up to its end, or 0. */
static size_t find_end(const char *data, size_t max, size_t seen,
		       const void *delimiter, size_t delimiter_bytes)
{
	const char *at;

	/* It may have begun in what was seen. */
	seen = seen < delimiter_bytes ? 0 : seen - (delimiter_bytes - 1);
	at = memmem(data + seen, max - seen, delimiter, delimiter_bytes);
	return at ? (size_t)(at - data) + delimiter_bytes : 0;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* As weft_stream_until(), and tells the end of the stream from errors. */
static ssize_t until(struct weft_stream *stream, const void *delimiter,
		     size_t delimiter_bytes, size_t bytes_max,
		     const void **ret_data, bool *ret_ended)
{
	struct weft__stream *s = weft__stream(stream);
	ssize_t shown;
	size_t seen = 0;

	if (!delimiter_bytes || delimiter_bytes > bytes_max)
		return weft__call_refused(-EINVAL);
	while ((shown = weft_stream_peek(stream, ret_data)) > 0) {
		size_t bytes = least((size_t)shown, bytes_max);
		size_t end = find_end(*ret_data, bytes, seen, delimiter,
				      delimiter_bytes);
		int r;

		if (end)
			return (ssize_t)end;
		if (bytes == bytes_max)
			return -EMSGSIZE;
		seen = bytes;
		/* A piece in place is gathered first. */
		r = gather(s, bytes_max - (s->gathered ? bytes : 0));
		*ret_ended = r == 0;
		if (r <= 0)
			return r < 0 ? r : -ENODATA;
	}
	return shown;
}

ssize_t weft_stream_until(struct weft_stream *stream, const void *delimiter,
			  size_t delimiter_bytes, size_t bytes_max,
			  const void **ret_data)
{
	bool ended;

	return until(stream, delimiter, delimiter_bytes, bytes_max, ret_data,
		     &ended);
}

ssize_t weft__stream_show_least(struct weft_stream *stream, size_t bytes,
				const void **ret_data)
{
	struct weft__stream *s = weft__stream(stream);
	ssize_t shown;

	while ((shown = weft_stream_peek(stream, ret_data)) > 0 &&
	       (size_t)shown < bytes) {
		/* A piece in place is gathered first. */
		size_t more = s->gathered ? bytes - (size_t)shown : bytes;
		int r = gather(s, more);

		if (r <= 0)
			return r < 0 ? r : -ENODATA;
	}
	return shown;
}

ssize_t weft_stream_line(struct weft_stream *stream, char *buf, size_t room)
{
	struct weft__stream *s = weft__stream(stream);
	const void *data;
	bool ended = false;
	ssize_t bytes;

	if (room < 2)
		return weft__call_refused(-EINVAL);
	/* One byte more tells whether the last line, which may have no end,
	 * fits. */
	bytes = until(stream, "\n", 1, room, &data, &ended);
	if (bytes == -ENODATA && ended)
		bytes = (ssize_t)weft__stream_show(s, &data);
	if (bytes == (ssize_t)room)
		bytes = -EMSGSIZE;
	if (bytes <= 0)
		return bytes;
	memcpy(buf, data, (size_t)bytes);
	buf[bytes] = '\0';
	weft__stream_skip(s, (size_t)bytes);
	return bytes;
}

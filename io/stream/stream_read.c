/* SPDX-License-Identifier: MIT */
/*
 * Streams: taking what has been received.
 */
#include <string.h>

#include "io/request/call.h"
#include "io/stream/received.h"

void weft_stream_skip(struct weft_stream *stream, size_t bytes)
{
	struct weft__stream *s = weft__stream(stream);
	const void *data;

	if (!bytes)
		return;
	weft__assert((s->head || s->own || s->gathered) &&
			     bytes <= weft__stream_show(s, &data),
		     "weft_stream_skip: more bytes than the last peek showed");
	weft__stream_skip(s, bytes);
}

ssize_t weft_stream_read(struct weft_stream *stream, void *buf, size_t bytes)
{
	struct weft__stream *s = weft__stream(stream);
	const void *data;
	size_t done = 0;
	ssize_t n;

	if (!bytes)
		return weft__call_refused(0);
	n = weft_stream_peek(stream, &data);
	if (n <= 0)
		return n;
	while (done < bytes && weft__stream_has_some(s)) {
		size_t some = weft__stream_show(s, &data);

		if (some > bytes - done)
			some = bytes - done;
		memcpy((char *)buf + done, data, some);
		weft__stream_skip(s, some);
		done += some;
	}
	weft__call_charge(weft__worker_self(), done);
	return (ssize_t)done;
}

int weft_stream_read_all(struct weft_stream *stream, void *buf, size_t bytes,
			 size_t *ret_done)
{
	size_t done = 0;
	ssize_t n = 1;

	while (n > 0 && done < bytes) {
		n = weft_stream_read(stream, (char *)buf + done, bytes - done);
		if (n > 0)
			done += (size_t)n;
	}
	if (ret_done)
		*ret_done = done;
	if (n < 0)
		return (int)n;
	return n == 0 ? -ENODATA : 0;
}

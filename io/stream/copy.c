/* SPDX-License-Identifier: MIT */
/*
 * Streams: copying from one to another, from the buffers of the first.
 */
#include "io/stream/stream.h"

int weft_stream_copy(struct weft_stream *to, struct weft_stream *from,
		     uint64_t bytes_max, uint64_t *ret_done)
{
	uint64_t done = 0;
	ssize_t n = 1;
	int r = 0;

	while (r == 0 && done < bytes_max) {
		const void *data;
		size_t some;

		n = weft_stream_peek(from, &data);
		if (n <= 0)
			break;
		if ((uint64_t)n > bytes_max - done)
			n = (ssize_t)(bytes_max - done);
		r = weft_stream_write_all(to, data, (size_t)n, &some);
		weft_stream_skip(from, some);
		done += some;
	}
	if (ret_done)
		*ret_done = done;
	return n < 0 ? (int)n : r;
}

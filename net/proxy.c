/* SPDX-License-Identifier: MIT */
#include <weft/serve.h>

#include <errno.h>

#include "io/stream/stream.h"

enum { V2_FIXED = 16 };

/* Of a header that is good so far: the bytes that it has at least. */
static size_t bytes_min(const unsigned char *data, size_t bytes)
{
	bool has_length = data[0] != 'P' && bytes >= V2_FIXED;

	return has_length ? V2_FIXED + ((size_t)data[14] << 8) + data[15] :
			    bytes + 1;
}

/* -EAGAIN, which asks for more, if there may be more. */
static ssize_t parse_limited(const void *data, size_t bytes, size_t bytes_max,
			     struct weft_proxy_header *ret_header)
{
	struct weft_proxy_header header;
	ssize_t n = weft_proxy_parse(data, bytes, &header);

	if (n > 0 && (size_t)n > bytes_max)
		return -EMSGSIZE;
	if (n == -EAGAIN && bytes_min(data, bytes) > bytes_max)
		return -EMSGSIZE;
	if (n > 0)
		*ret_header = header;
	return n;
}

ssize_t weft_proxy_read(struct weft_stream *stream, size_t bytes_max,
			struct weft_proxy_header *ret_header)
{
	const void *data;
	ssize_t shown = weft__stream_show_least(stream, 1, &data);

	while (shown > 0) {
		ssize_t n = parse_limited(data, (size_t)shown, bytes_max,
					  ret_header);

		if (n != -EAGAIN)
			return n;
		shown = weft__stream_show_least(stream, (size_t)shown + 1,
						  &data);
	}
	return shown;
}

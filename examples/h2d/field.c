/* SPDX-License-Identifier: MIT */
/*
 * The fields of a request.  The session shows each one for a moment; those that
 * the server uses are kept in the buffer of the stream.
 */
#include "stream.h"

/* A field counts with its text and these (RFC 9113, 6.5.2). */
#define FIELD_BYTES 32

static struct span *find(struct stream *stream, struct span name)
{
	if (span_equals_nocase(name, ":path"))
		return &stream->asked.path;
	if (span_equals_nocase(name, ":method"))
		return &stream->method;
	return asked_field(&stream->asked, name);
}

static struct span keep(struct stream *stream, struct span value)
{
	char *copy = stream->buffer + stream->kept_bytes;

	memcpy(copy, value.at, value.bytes);
	stream->kept_bytes += value.bytes;
	return (struct span){ copy, value.bytes };
}

static void cut_query(struct span *path)
{
	for (size_t i = 0; i < path->bytes; i++)
		if (path->at[i] == '?' || path->at[i] == '#')
			path->bytes = i;
}

/* The kept bytes are never more than the counted ones, so they fit. */
void stream_add_field(struct stream *stream, struct span name,
		      struct span value)
{
	struct span *known;

	stream->header_bytes += name.bytes + value.bytes + FIELD_BYTES;
	if (stream->header_bytes > HEADER_BYTES_MAX)
		return;
	known = find(stream, name);
	if (!known)
		return;
	*known = keep(stream, value);
	if (known == &stream->asked.path)
		cut_query(known);
	if (known == &stream->method)
		stream->asked.method = span_equals(value, "GET") ? METHOD_GET :
				       span_equals(value, "HEAD") ?
								   METHOD_HEAD :
								   METHOD_OTHER;
}

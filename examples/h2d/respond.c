/* SPDX-License-Identifier: MIT */
/* The fields of an answer. */
#include <stdio.h>

#include "../common/http/fields.h"
#include "content.h"

#define FIELDS_MAX 12

static nghttp2_nv field(char *name, size_t name_bytes, char *value,
			size_t value_bytes)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, name_bytes,
			     value_bytes, NGHTTP2_NV_FLAG_NONE };
}

/* Shows the lines of a header as fields.  The session puts their names in lower
 * case. */
static size_t split_lines(char *at, const char *end, nghttp2_nv *fields)
{
	size_t count = 0;

	while (at < end && count < FIELDS_MAX) {
		char *value = memchr(at, ':', (size_t)(end - at));
		char *next = memchr(at, '\r', (size_t)(end - at));

		fields[count++] = field(at, (size_t)(value - at), value + 2,
					(size_t)(next - value - 2));
		at = next + 2;
	}
	return count;
}

static bool has_content(const struct stream *stream)
{
	return stream->asked.method != METHOD_HEAD &&
	       stream->answer.status != STATUS_NOT_MODIFIED;
}

void stream_respond(struct stream *stream)
{
	struct connection *connection = stream->connection;
	struct text text = { stream->buffer, stream->buffer + BUFFER_BYTES };
	nghttp2_data_provider content = { .read_callback = content_take };
	nghttp2_nv fields[1 + FIELDS_MAX];
	char status[] = "000", name[] = ":status";
	bool full = has_content(stream);
	struct dates dates = { 0 };
	size_t count;
	int r = 0;

	snprintf(status, sizeof(status), "%d", stream->answer.status);
	fields[0] = field(name, strlen(name), status, strlen(status));
	fields_put(&text, &stream->answer, &dates);
	count = split_lines(stream->buffer, text.at, fields + 1);
	connection_lock(connection);
	if (!stream->closed)
		r = nghttp2_submit_response(connection->session, stream->id,
					    fields, 1 + count,
					    full ? &content : NULL);
	if (r < 0)
		stream_reset(stream, NGHTTP2_INTERNAL_ERROR);
	else if (full)
		content_begin(stream);
	if (stream->left == 0)
		stream_owe(stream, false);
	connection_unlock(connection);
}

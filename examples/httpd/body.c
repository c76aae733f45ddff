/* SPDX-License-Identifier: MIT */
/*
 * The body of a request.  This server uses none; but the next request comes
 * after it, so a short body, of a known length or in chunks, is read and
 * dropped.
 */
#include "body.h"

#define BODY_BYTES_MAX 65536u

int body_check(const struct request *request)
{
	if (request->parser.flags & F_CONTENTLENGTH &&
	    request->parser.content_length > BODY_BYTES_MAX)
		return STATUS_PAYLOAD_TOO_LARGE;
	return 0;
}

bool body_withheld(const struct request *request)
{
	return request_has_body(request) && request->expect.at;
}

/* Stops after the body: the next request follows. */
static int on_end(http_parser *parser)
{
	http_parser_pause(parser, 1);
	return 0;
}

bool body_skip(struct connection *connection, struct request *request)
{
	static const http_parser_settings callbacks = {
		.on_message_complete = on_end,
	};
	http_parser *parser = &request->parser;
	size_t skipped = 0;

	for (;;) {
		size_t n = http_parser_execute(
			parser, &callbacks,
			connection->input + connection->begin,
			connection->end - connection->begin);

		connection->begin += n;
		skipped += n;
		if (HTTP_PARSER_ERRNO(parser) == HPE_PAUSED)
			return true;
		if (HTTP_PARSER_ERRNO(parser) != HPE_OK ||
		    skipped > BODY_BYTES_MAX ||
		    connection_fill(connection) <= 0)
			return false;
	}
}

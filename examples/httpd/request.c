/* SPDX-License-Identifier: MIT */
/*
 * The interface to http_parser, which reads bytes and calls back.
 *
 * If a header arrives in pieces, it is parsed from its start with each piece.
 * So there is no state between pieces, and the buffer may move; and since the
 * header is always parsed in one call, a span is never split.  The second line
 * of a folded header would be a second span, and is refused, as RFC 9112, 5.2
 * demands.
 */
#include "field.h"

static int on_url(http_parser *parser, const char *at, size_t bytes)
{
	struct request *request = parser->data;

	request->target = (struct span){ at, bytes };
	return 0;
}

/* Fails, and so makes the request invalid, if a space precedes the colon. */
static int on_field(http_parser *parser, const char *at, size_t bytes)
{
	struct request *request = parser->data;

	request->value = field_find(request, (struct span){ at, bytes });
	request->value_done = false;
	return memchr(at, ' ', bytes) != NULL;
}

/* Fails on a folded header, and on a second Host. */
static int on_value(http_parser *parser, const char *at, size_t bytes)
{
	struct request *request = parser->data;

	if (request->value_done ||
	    (request->value == &request->host && request->host.at))
		return -1;
	request->value_done = true;
	if (request->value)
		*request->value = field_trim((struct span){ at, bytes });
	return 0;
}

/* Stops at the end of the header, so that nothing after it is parsed. */
static int on_header_end(http_parser *parser)
{
	http_parser_pause(parser, 1);
	return 0;
}

static const http_parser_settings callbacks = {
	.on_url = on_url,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_headers_complete = on_header_end,
};

bool request_has_body(const struct request *request)
{
	const http_parser *parser = &request->parser;

	return parser->flags & F_CHUNKED ||
	       (parser->flags & F_CONTENTLENGTH && parser->content_length > 0);
}

/* Refuses requests that http_parser accepts and this server does not.  Data
 * after a CONNECT would not be a request, and http_parser does not skip a body
 * then. */
static int check(const struct request *request)
{
	const http_parser *parser = &request->parser;

	if (parser->method == HTTP_CONNECT)
		return STATUS_NOT_IMPLEMENTED;
	if (parser->http_major != 1)
		return STATUS_VERSION_NOT_SUPPORTED;
	if (parser->http_minor > 0 && !request->host.at)
		return STATUS_BAD_REQUEST;
	if (request->transfer_encoding.at && !(parser->flags & F_CHUNKED))
		return STATUS_NOT_IMPLEMENTED;
	return 0;
}

static struct span target_path(struct span target)
{
	struct span path = { "/", 1 };
	struct http_parser_url url;

	http_parser_url_init(&url);
	if (http_parser_parse_url(target.at, target.bytes, 0, &url))
		return (struct span){ NULL, 0 };
	if (url.field_set & 1 << UF_PATH) {
		path.at = target.at + url.field_data[UF_PATH].off;
		path.bytes = url.field_data[UF_PATH].len;
	}
	return path;
}

static void set_asked(struct request *request)
{
	unsigned method = request->parser.method;

	request->asked.method = method == HTTP_GET  ? METHOD_GET :
				method == HTTP_HEAD ? METHOD_HEAD :
						      METHOD_OTHER;
	request->asked.path = target_path(request->target);
}

int request_parse(struct request *request, const char *bytes, size_t count,
		  size_t *ret_used)
{
	size_t parsed;

	memset(request, 0, sizeof(*request));
	http_parser_init(&request->parser, HTTP_REQUEST);
	request->parser.data = request;
	parsed =
		http_parser_execute(&request->parser, &callbacks, bytes, count);
	/* Before its end, the method is only a guess from its first letter. */
	if (!request->target.at)
		request->parser.method = HTTP_GET;
	if (HTTP_PARSER_ERRNO(&request->parser) == HPE_OK) {
		request->target.bytes = 0;
		return REQUEST_PARTIAL;
	}
	*ret_used = parsed;
	/* The parser takes any byte after the last CR for the line feed. */
	if (HTTP_PARSER_ERRNO(&request->parser) != HPE_PAUSED ||
	    bytes[parsed] != '\n')
		return STATUS_BAD_REQUEST;
	/* The parser paused before the last line feed, which it counts as
	 * body. */
	if (!request_has_body(request))
		*ret_used = parsed + 1;
	http_parser_pause(&request->parser, 0);
	set_asked(request);
	return check(request);
}

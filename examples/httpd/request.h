/* SPDX-License-Identifier: MIT */
/*
 * The header of a request, as spans of the buffer that it was read into.
 */
#ifndef HTTPD_REQUEST_H
#define HTTPD_REQUEST_H

#include <http_parser.h>

#include "../common/http/asked.h"
#include "../common/http/status.h"

struct request {
	http_parser parser; /* method, version; also parses the body */
	struct asked asked; /* its path is NULL if the target is malformed */
	struct span target;
	struct span host;
	struct span expect;
	struct span transfer_encoding;

	struct span *value; /* for the current header field; NULL: ignored */
	bool value_done;    /* another line of it would be folded */
};

/* request_parse() needs more bytes. */
#define REQUEST_PARTIAL (-1)

/* Parses a header from its start.  Returns REQUEST_PARTIAL if it is incomplete:
 * no span is valid then; when there are more bytes, call again with all of
 * them.  Otherwise returns 0 for a valid header, or the status to refuse the
 * request with, and sets *ret_used to the length of the header, without the
 * last line feed if a body follows. */
int request_parse(struct request *request, const char *bytes, size_t count,
		  size_t *ret_used);

bool request_has_body(const struct request *request);

#endif

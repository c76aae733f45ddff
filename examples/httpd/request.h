/* SPDX-License-Identifier: MIT */
/*
 * The header of a request, as spans of the buffer it was read into.
 */
#ifndef HTTPD_REQUEST_H
#define HTTPD_REQUEST_H

#include <http_parser.h>

#include "text.h"

struct request {
	http_parser parser; /* method, version; goes on through the body */
	struct span target;
	struct span host;
	struct span range;
	struct span if_range;
	struct span if_none_match;
	struct span if_modified_since;
	struct span expect;
	struct span transfer_encoding;

	struct span *value; /* for the header field at hand; NULL: ignored */
	bool value_done;    /* another line of it would be a folded one */
};

/* request_parse() wants more bytes. */
#define REQUEST_PARTIAL (-1)

/*
 * Parses a header from its start.  REQUEST_PARTIAL if it is not all there yet:
 * call again with all of it, once there is more; until then no span counts.  0
 * if it is there and good, or the status to refuse it with; and then *ret_used
 * gets its length, without the last line feed if a body follows.
 */
int request_parse(struct request *request, const char *bytes, size_t count,
		  size_t *ret_used);

bool request_has_body(const struct request *request);

#endif

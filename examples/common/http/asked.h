/* SPDX-License-Identifier: MIT */
/*
 * The part of a request that a server of files uses, in any version of HTTP.
 */
#ifndef HTTP_ASKED_H
#define HTTP_ASKED_H

#include "text.h"

enum method {
	METHOD_GET,
	METHOD_HEAD,
	METHOD_OTHER,
};

/* A list may come in as many lines; of more, the last one replaces another. */
#define ASKED_LINES 4

/* The spans are empty where the request has nothing. */
struct asked {
	enum method method;
	struct span path; /* of the URL, escaped, without the query */
	struct span range;
	struct span if_range;
	struct span if_match[ASKED_LINES];
	struct span if_none_match[ASKED_LINES];
	struct span if_modified_since;
	struct span if_unmodified_since;
};

/* Where the value of the next line of the header field with that name is kept;
 * the case of the name does not matter.  NULL: the server ignores the field. */
struct span *asked_field(struct asked *asked, struct span name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The two forms of a request; results are those of request_parse().
 */
#ifndef KV_PARSE_H
#define KV_PARSE_H

#include <errno.h>

#include "request.h"

int request_parse_array(struct request *request, const char *data,
			size_t bytes);
int request_parse_words(struct request *request, const char *data,
			size_t bytes);

static inline int request_refuse(struct request *request, const char *error)
{
	request->error = error;
	return -EPROTO;
}

enum { ARG_BYTES_MIN = 6 }; /* "$0\r\n\r\n" */

/* The argument that is parsed ends at `end`, and those after it have to
 * come. */
static inline int request_need(struct request *request, size_t end,
			       size_t bytes)
{
	size_t others = 0;

	if (request->wanted > request->count)
		others = (request->wanted - request->count - 1) * ARG_BYTES_MIN;
	request->missing = end + others - bytes;
	return 0;
}

static inline void request_add(struct request *request, size_t at, size_t bytes)
{
	request->args[request->count].at = (uint32_t)at;
	request->args[request->count++].bytes = (uint32_t)bytes;
}

#endif

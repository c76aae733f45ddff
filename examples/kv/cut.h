/* SPDX-License-Identifier: MIT */
/*
 * A request that comes in several pieces.  They are gathered in memory that
 * grows as they come: what a client only announces costs nothing.
 */
#ifndef KV_CUT_H
#define KV_CUT_H

#include <weft/stream.h>

#include "request.h"

struct cut {
	char *data;
	size_t bytes; /* 0: the last request was not cut */
	size_t room;
};

/* The first bytes of the request.  Returns 0 or -ENOMEM. */
int cut_begin(struct cut *cut, const char *data, size_t bytes);

/* Receives what is missing of the request, and nothing behind it.  Returns as
 * input_next(). */
int cut_receive(struct cut *cut, struct weft_stream *stream,
		struct request *request);

/* Ends the use of the request, and frees what few requests need. */
void cut_end(struct cut *cut);

void cut_fini(struct cut *cut);

#endif

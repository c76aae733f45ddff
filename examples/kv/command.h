/* SPDX-License-Identifier: MIT */
/*
 * The commands by their names.  Those that belong together share a file, and
 * are declared in commands.h.
 */
#ifndef KV_COMMAND_H
#define KV_COMMAND_H

#include "answer.h"
#include "request.h"
#include "table.h"

struct call {
	struct table *table;
	struct weft_stream *stream; /* for the answer */
	const struct request *request;
	bool quits; /* set by the command: no request follows */
};

static inline struct bytes call_arg(const struct call *call, unsigned index)
{
	return request_arg(call->request, index);
}

static inline struct key call_key(const struct call *call, unsigned index)
{
	return table_key(call->table, call_arg(call, index));
}

/* Executes the request and answers it; what the client did wrong is an answer,
 * too.  Returns 0, or why nothing can be answered any more. */
int call_run(struct call *call);

#endif

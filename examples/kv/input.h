/* SPDX-License-Identifier: MIT */
/*
 * The requests of a connection, one after the other.
 *
 * A request that came in one piece is parsed and used in the buffers that the
 * stream received it in.  Only one that is cut is copied.
 */
#ifndef KV_INPUT_H
#define KV_INPUT_H

#include "cut.h"

struct input {
	struct weft_stream *stream;
	const char *piece; /* that the stream shows */
	size_t piece_bytes;
	size_t piece_at; /* bytes of it that were used */
	struct cut cut;
};

/* Waits for the next request, whose data is valid until the next call.  Answers
 * that were put leave before a wait.  Returns 1, 0 at the end, -EPROTO and
 * request->error, -ENOMEM, or an error of the stream. */
int input_next(struct input *input, struct request *request);

void input_fini(struct input *input);

#endif

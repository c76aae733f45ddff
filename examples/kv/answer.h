/* SPDX-License-Identifier: MIT */
/*
 * Answers, each put into the stream: those to requests that came together leave
 * together.  They suspend only while the client is slow to take earlier ones.
 * Return 0 or an error of weft_stream_put().
 */
#ifndef KV_ANSWER_H
#define KV_ANSWER_H

#include <weft/stream.h>

#include "bytes.h"

/* A string literal that is a whole answer: "+OK\r\n". */
#define ANSWER(stream, text) weft_stream_put((stream), (text), sizeof(text) - 1)

static inline int answer_ok(struct weft_stream *stream)
{
	return ANSWER(stream, "+OK\r\n");
}

static inline int answer_nil(struct weft_stream *stream)
{
	return ANSWER(stream, "$-1\r\n");
}

int answer_number(struct weft_stream *stream, int64_t number);

/* A string of any bytes. */
int answer_bytes(struct weft_stream *stream, struct bytes bytes);

/* So many answers follow. */
int answer_array(struct weft_stream *stream, size_t count);

/* A sentence, whose bytes that would break the protocol become spaces. */
__attribute__((format(printf, 2, 3))) int
answer_error(struct weft_stream *stream, const char *format, ...);

#define NO_MEMORY "OOM no memory for that"

static inline int answer_no_memory(struct weft_stream *stream)
{
	return answer_error(stream, "%s", NO_MEMORY);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Text that is read in place (a span) and text that is composed (a text).  The
 * memory of both belongs to the caller.
 */
#ifndef HTTP_TEXT_H
#define HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes in a buffer of other code, not terminated.  All zero: there are
 * none. */
struct span {
	const char *at;
	size_t bytes;
};

/* The place of the next byte, and the end of the room.  Bytes that do not fit
 * are dropped: the buffers here are large enough for all possible text. */
struct text {
	char *at;
	char *end;
};

static inline void text_put_bytes(struct text *text, const void *bytes,
				  size_t count)
{
	size_t room = (size_t)(text->end - text->at);

	if (count > room)
		count = room;
	memcpy(text->at, bytes, count);
	text->at += count;
}

static inline void text_put(struct text *text, const char *string)
{
	text_put_bytes(text, string, strlen(string));
}

void text_put_number(struct text *text, uint64_t number);

/* A path as part of a URL: all but harmless characters are written as %HH. */
void text_put_url(struct text *text, const char *path);

/* A string as part of an HTML page: characters with a meaning there are
 * escaped. */
void text_put_html(struct text *text, const char *string);

static inline bool span_equals(struct span span, const char *string)
{
	return span.bytes == strlen(string) &&
	       memcmp(span.at, string, span.bytes) == 0;
}

/* The same for names whose case does not matter.  string is in lower case. */
bool span_equals_nocase(struct span span, const char *string);

#endif

/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>

#include "answer.h"

enum { ERROR_BYTES_MAX = 256 };

/* A kind, a number and CRLF. */
struct head {
	char text[1 + NUMBER_BYTES + 2];
	size_t bytes;
};

static void head_print(struct head *head, char kind, int64_t number)
{
	head->text[0] = kind;
	head->bytes = 1 + number_print(number, head->text + 1);
	head->text[head->bytes++] = '\r';
	head->text[head->bytes++] = '\n';
}

static int put_head(struct weft_stream *stream, char kind, int64_t number)
{
	struct head head;

	head_print(&head, kind, number);
	return weft_stream_put(stream, head.text, head.bytes);
}

int answer_number(struct weft_stream *stream, int64_t number)
{
	return put_head(stream, ':', number);
}

int answer_array(struct weft_stream *stream, size_t count)
{
	return put_head(stream, '*', (int64_t)count);
}

int answer_bytes(struct weft_stream *stream, struct bytes bytes)
{
	int r = put_head(stream, '$', (int64_t)bytes.count);

	if (r == 0)
		r = weft_stream_put(stream, bytes.at, bytes.count);
	return r == 0 ? ANSWER(stream, "\r\n") : r;
}

int answer_error(struct weft_stream *stream, const char *format, ...)
{
	char text[ERROR_BYTES_MAX + 3] = "-";
	va_list values;
	size_t bytes;

	va_start(values, format);
	vsnprintf(text + 1, ERROR_BYTES_MAX, format, values);
	va_end(values);
	bytes = strlen(text);
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)text[i] < ' ')
			text[i] = ' ';
	memcpy(text + bytes, "\r\n", 2);
	return weft_stream_put(stream, text, bytes + 2);
}

/* SPDX-License-Identifier: MIT */
#include "parse.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Notes where the words of a line are. */
static int split(struct request *request, const char *data, size_t bytes)
{
	size_t at = 0, first;

	while (at < bytes) {
		for (first = at; at < bytes && !is_blank(data[at]);)
			at++;
		if (at > first && request->count == ARGS_MAX)
			return request_refuse(request,
					      "Protocol error: too many words");
		if (at > first)
			request_add(request, first, at - first);
		at++;
	}
	return 1;
}

int request_parse_words(struct request *request, const char *data, size_t bytes)
{
	const char *end = memchr(data + request->at, '\n', bytes - request->at);

	request->at = end ? (size_t)(end + 1 - data) : bytes;
	if (request->at > INLINE_BYTES_MAX)
		return request_refuse(request,
				      "Protocol error: too big inline request");
	return end ? split(request, data, request->at - 1) :
		     request_need(request, bytes + 1, bytes);
}

int request_parse(struct request *request, const char *data, size_t bytes)
{
	return *data == '*' ? request_parse_array(request, data, bytes) :
			      request_parse_words(request, data, bytes);
}

/* SPDX-License-Identifier: MIT */
#include "parse.h"

enum { LENGTH_DIGITS_MAX = 9 }; /* of a number that fits an int32_t */

/* Takes "*N\r\n" or "$N\r\n": 1 and N, 0 if a part is missing, or an error. */
static int take_length(struct request *request, const char *data, size_t bytes,
		       const char *error, uint32_t *ret_length)
{
	size_t first = request->at + 1, at = first;
	uint32_t length = 0;

	for (; at < bytes && data[at] >= '0' && data[at] <= '9'; at++) {
		if (at - first == LENGTH_DIGITS_MAX)
			return request_refuse(request, error);
		length = length * 10 + (uint32_t)(data[at] - '0');
	}
	if (at < bytes && (at == first || data[at] != '\r'))
		return request_refuse(request, error);
	if (at + 2 > bytes)
		return request_need(request, at + 2 + (at == first), bytes);
	if (data[at + 1] != '\n')
		return request_refuse(request, error);
	request->at = at + 2;
	*ret_length = length;
	return 1;
}

/* Takes the length of the next argument. */
static int take_bulk(struct request *request, const char *data, size_t bytes)
{
	uint32_t length;
	int r;

	if (request->at == bytes)
		return request_need(request, bytes + ARG_BYTES_MIN, bytes);
	if (data[request->at] != '$')
		return request_refuse(request, "Protocol error: expected '$'");
	r = take_length(request, data, bytes,
			"Protocol error: invalid bulk length", &length);
	if (r <= 0)
		return r;
	if (request->at > REQUEST_BYTES_MAX ||
	    length > REQUEST_BYTES_MAX - request->at)
		return request_refuse(request,
				      "Protocol error: invalid bulk length");
	request->bulk = (int32_t)length;
	return 1;
}

/* Takes the bytes of the argument whose length is known. */
static int take_arg(struct request *request, const char *data, size_t bytes)
{
	size_t end = request->at + (size_t)request->bulk;

	if (end + 2 > bytes)
		return request_need(request, end + 2, bytes);
	if (data[end] != '\r' || data[end + 1] != '\n')
		return request_refuse(request, "Protocol error: expected CRLF");
	request_add(request, request->at, (size_t)request->bulk);
	request->at = end + 2;
	request->bulk = -1;
	return 1;
}

int request_parse_array(struct request *request, const char *data, size_t bytes)
{
	int r = 1;

	if (request->at == 0)
		r = take_length(request, data, bytes,
				"Protocol error: invalid multibulk length",
				&request->wanted);
	if (r > 0 && request->wanted > ARGS_MAX)
		return request_refuse(
			request, "Protocol error: invalid multibulk length");
	while (r > 0 && request->count < request->wanted)
		r = request->bulk < 0 ? take_bulk(request, data, bytes) :
					take_arg(request, data, bytes);
	return r;
}

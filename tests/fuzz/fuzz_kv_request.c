/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the requests of examples/kv.  The result does not depend on where the
 * bytes are cut, the arguments lie within the request, and the number of
 * missing bytes is neither 0 nor more than the request has.
 *
 *	clang-14 -g -O1 -fsanitize=fuzzer,address,undefined -std=c11
 *		-D_GNU_SOURCE -I. tests/fuzz/fuzz_kv_request.c \
 *		examples/kv/array.c examples/kv/words.c
 *	./a.out -max_len=512 -max_total_time=60
 */
#include <stdlib.h>

#include "examples/kv/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* Parses the first bytes, in memory that has no more, and where no earlier call
 * found them. */
static int parse(struct request *request, const uint8_t *data, size_t bytes)
{
	char *copy = malloc(bytes);
	int r;

	must(copy != NULL);
	memcpy(copy, data, bytes);
	r = request_parse(request, copy, bytes);
	free(copy);
	return r;
}

static void check_args(const struct request *request, size_t bytes)
{
	size_t end = 0;

	must(request->at > 0 && request->at <= bytes);
	must(request->count <= ARGS_MAX);
	for (unsigned i = 0; i < request->count; i++) {
		must(request->args[i].at >= end);
		end = request->args[i].at + (size_t)request->args[i].bytes;
		must(end < request->at);
	}
}

static void must_equal(const struct request *a, const struct request *b)
{
	must(a->at == b->at && a->count == b->count);
	must(memcmp(a->args, b->args, a->count * sizeof(*a->args)) == 0);
}

/* The request in pieces of `step` bytes, or, if it is 0, of what is
 * missing.  Returns the bytes that were given. */
static size_t parse_pieces(struct request *request, const uint8_t *data,
			   size_t size, size_t step, int *ret_result)
{
	size_t bytes = 0;

	request_begin(request);
	request->missing = 1;
	*ret_result = 0;
	while (*ret_result == 0) {
		size_t more = step > 0 ? step : request->missing;

		must(request->missing > 0);
		if (more > size - bytes)
			break;
		bytes += more;
		*ret_result = parse(request, data, bytes);
	}
	return bytes;
}

static void check_request(const uint8_t *data, size_t size, size_t step,
			  struct request *whole, struct request *pieces)
{
	size_t bytes;
	int r, again;

	request_begin(whole);
	r = parse(whole, data, size);
	if (r > 0)
		check_args(whole, size);
	must(r >= 0 || whole->error != NULL);
	bytes = parse_pieces(pieces, data, size, step, &again);
	must(again == r || (again == 0 && size - bytes < step));
	if (again > 0)
		must_equal(whole, pieces);
	/* A reader of the missing bytes reads none of the next request. */
	bytes = parse_pieces(pieces, data, size, 0, &again);
	must(again == r || r == 0 || r < 0);
	if (again > 0) {
		must_equal(whole, pieces);
		must(bytes == pieces->at);
	}
}

/* The first byte is the size of the pieces; then come requests. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct request whole, pieces;
	size_t step, at = 1;

	if (size == 0)
		return 0;
	step = (size_t)data[0] + 1;
	while (at < size) {
		check_request(data + at, size - at, step, &whole, &pieces);
		request_begin(&whole);
		if (parse(&whole, data + at, size - at) <= 0)
			break;
		at += whole.at;
	}
	return 0;
}

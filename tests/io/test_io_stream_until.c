/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/until: input up to a delimiter, lines, and copies from one
 * stream to another.
 */
#include <fcntl.h>

#include "tests/support/stream_kit.h"

struct pair {
	struct weft_stream stream;
	int peer;
};

/* A connection, or a pipe. */
static void pair_open(struct pair *pair, unsigned kind)
{
	int fds[2];

	if (kind == 2)
		EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	else
		kit_pair(fds, kind == 1);
	weft_stream_init(&pair->stream, fds[0]);
	pair->peer = fds[1];
}

static void pair_close(struct pair *pair)
{
	EXPECT(weft_stream_close(&pair->stream) == 0);
	if (pair->peer >= 0)
		EXPECT(weft_close(pair->peer) == 0);
}

static void pair_send(struct pair *pair, const char *text, size_t bytes)
{
	EXPECT(weft_write_all(pair->peer, text, bytes, NULL) == 0);
}

static void pair_end(struct pair *pair)
{
	EXPECT(weft_close(pair->peer) == 0);
	pair->peer = -1;
}

/* Runs it for each kind. */
static void for_all_kinds(void (*test)(struct pair *pair))
{
	for (unsigned kind = 0; kind < 3; kind++) {
		struct pair pair;

		pair_open(&pair, kind);
		test(&pair);
		pair_close(&pair);
	}
}

/* ---- Until --------------------------------------------------------------- */

#define HEADER "GET / HTTP/1.1\r\nhost: a\r\n\r\n"

enum { HEADER_BYTES = sizeof(HEADER) - 1 };

static ssize_t until(struct pair *pair, const char *delimiter, size_t max,
		     const void **ret_data)
{
	return weft_stream_until(&pair->stream, delimiter, strlen(delimiter),
				 max, ret_data);
}

static int64_t send_in_two(void *arg)
{
	const struct {
		struct pair *pair;
		size_t at;
	} *two = arg;

	pair_send(two->pair, HEADER, two->at);
	EXPECT(weft_sleep(WEFT_US(200)) == 0);
	pair_send(two->pair, &(HEADER "rest")[two->at],
		  HEADER_BYTES + 4 - two->at);
	return 0;
}

/* The header comes in two parts, cut at each byte. */
static void cut_everywhere(struct pair *pair)
{
	for (size_t at = 1; at < HEADER_BYTES; at++) {
		struct {
			struct pair *pair;
			size_t at;
		} two = { pair, at };
		const void *data;
		char rest[4];

		WEFT_SCOPE (scope, NULL) {
			EXPECT(weft_go(scope, send_in_two, &two, sizeof(two)) ==
			       0);
			/* It is there until it is skipped. */
			for (int i = 0; i < 2; i++)
				WEFT_WITHIN (WEFT_SEC(20))
					EXPECT(until(pair, "\r\n\r\n", 1000,
						     &data) == HEADER_BYTES);
			EXPECT(memcmp(data, HEADER, HEADER_BYTES) == 0);
			weft_stream_skip(&pair->stream, HEADER_BYTES);
			EXPECT(weft_stream_read_all(&pair->stream, rest, 4,
						    NULL) == 0);
			EXPECT(memcmp(rest, "rest", 4) == 0);
		}
	}
}

IO_TEST(delimiter_is_found_wherever_it_is_cut)
{
	for_all_kinds(cut_everywhere);
	return 0;
}

static void exceed(struct pair *pair)
{
	char bytes[12];
	const void *data;

	pair_send(pair, "0123456789\n", 11);
	EXPECT(until(pair, "\n", 10, &data) == -EMSGSIZE);
	EXPECT(until(pair, "\n", 11, &data) == 11);
	EXPECT(until(pair, "\n", 3, &data) == -EMSGSIZE);
	EXPECT(weft_stream_read_all(&pair->stream, bytes, 11, NULL) == 0);
	EXPECT(memcmp(bytes, "0123456789\n", 11) == 0);
}

IO_TEST(limit_is_an_error_and_takes_nothing)
{
	for_all_kinds(exceed);
	return 0;
}

static void end_early(struct pair *pair)
{
	char bytes[4];
	const void *data;

	pair_send(pair, "a\nrest", 6);
	pair_end(pair);
	EXPECT(until(pair, "\n", 100, &data) == 2);
	weft_stream_skip(&pair->stream, 2);
	EXPECT(until(pair, "\n", 100, &data) == -ENODATA);
	EXPECT(weft_stream_read_all(&pair->stream, bytes, 4, NULL) == 0);
	EXPECT(memcmp(bytes, "rest", 4) == 0);
	EXPECT(until(pair, "\n", 100, &data) == 0);
}

IO_TEST(end_without_the_delimiter_is_told)
{
	for_all_kinds(end_early);
	return 0;
}

static void interrupt(struct pair *pair)
{
	const void *data;

	for (int i = 0; i < 10; i++) {
		pair_send(pair, "ha", 2);
		for (int k = 0; k < 2; k++)
			WEFT_WITHIN (WEFT_US(200))
				EXPECT(until(pair, "\n", 100, &data) ==
				       -ETIMEDOUT);
		pair_send(pair, "llo\n", 4);
		EXPECT(until(pair, "\n", 100, &data) == 6);
		EXPECT(memcmp(data, "hallo\n", 6) == 0);
		weft_stream_skip(&pair->stream, 6);
	}
}

IO_TEST(interrupted_wait_for_a_delimiter_loses_nothing)
{
	for_all_kinds(interrupt);
	return 0;
}

IO_TEST(delimiter_that_cannot_be_is_refused)
{
	struct pair pair;
	const void *data;
	char line[1];

	pair_open(&pair, 0);
	pair_send(&pair, "ab\n", 3);
	EXPECT(until(&pair, "", 10, &data) == -EINVAL);
	EXPECT(until(&pair, "ab", 1, &data) == -EINVAL);
	EXPECT(weft_stream_line(&pair.stream, line, 1) == -EINVAL);
	EXPECT(weft_stream_putv(&pair.stream, NULL, -1) == -EINVAL);
	pair_close(&pair);
	return 0;
}

/* ---- Lines --------------------------------------------------------------- */

enum { LINES = 3000, LINE_MAX_BYTES = 9000 };

/* Short for the most part, and now and then longer than a piece. */
static size_t line_of(unsigned i, char *ret_line)
{
	size_t bytes = i % 50 == 49 ? 3000 + i : i * 7 % 90;

	memset(ret_line, 'a' + (int)(i % 26), bytes);
	ret_line[bytes] = '\n';
	return bytes + (i + 1 < LINES);
}

static int64_t send_lines(void *arg)
{
	struct pair *pair = *(struct pair **)arg;
	struct weft_stream out = WEFT_STREAM_INIT(pair->peer);
	char line[LINE_MAX_BYTES];

	for (unsigned i = 0; i < LINES; i++) {
		size_t bytes = line_of(i, line);
		struct iovec iov[2] = {
			{ line, bytes / 3 },
			{ line + bytes / 3, bytes - bytes / 3 },
		};

		EXPECT(weft_stream_putv(&out, iov, 2) == 0);
	}
	pair->peer = -1;
	EXPECT(weft_stream_close(&out) == 0);
	return 0;
}

static void read_lines(struct pair *pair)
{
	char line[LINE_MAX_BYTES], expected[LINE_MAX_BYTES];

	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, send_lines, pair);
		for (unsigned i = 0; i < LINES; i++) {
			size_t bytes = line_of(i, expected);

			EXPECT(weft_stream_line(&pair->stream, line,
						sizeof(line)) ==
			       (ssize_t)bytes);
			EXPECT(memcmp(line, expected, bytes) == 0);
			EXPECT(line[bytes] == '\0');
		}
		EXPECT(weft_stream_line(&pair->stream, line, sizeof(line)) ==
		       0);
	}
}

IO_TEST(lines_come_whole_and_in_order)
{
	for_all_kinds(read_lines);
	return 0;
}

static void line_too_long(struct pair *pair)
{
	char line[6];

	pair_send(pair, "12345\n1234\n\n", 12);
	EXPECT(weft_stream_line(&pair->stream, line, sizeof(line)) ==
	       -EMSGSIZE);
	EXPECT(weft_stream_read_all(&pair->stream, line, 6, NULL) == 0);
	EXPECT(weft_stream_line(&pair->stream, line, sizeof(line)) == 5);
	EXPECT(strcmp(line, "1234\n") == 0);
	EXPECT(weft_stream_line(&pair->stream, line, sizeof(line)) == 1);
	EXPECT(strcmp(line, "\n") == 0);
}

IO_TEST(line_that_does_not_fit_is_an_error_and_stays)
{
	for_all_kinds(line_too_long);
	return 0;
}

static void last_line(struct pair *pair)
{
	char line[4];

	pair_send(pair, "abc", 3);
	pair_end(pair);
	EXPECT(weft_stream_line(&pair->stream, line, 3) == -EMSGSIZE);
	EXPECT(weft_stream_line(&pair->stream, line, 4) == 3);
	EXPECT(strcmp(line, "abc") == 0);
	EXPECT(weft_stream_line(&pair->stream, line, 4) == 0);
}

IO_TEST(last_line_needs_no_room_for_an_end)
{
	for_all_kinds(last_line);
	return 0;
}

static int64_t skip_all(void *arg)
{
	weft_stream_skip(arg, 6);
	return 0;
}

/* A parser may run in a thread of the pool, and skip there. */
static void skip_elsewhere(struct pair *pair)
{
	const void *data;

	pair_send(pair, "abc", 3);
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(until(pair, "f", 10, &data) == -ETIMEDOUT);
	pair_send(pair, "def", 3);
	EXPECT(until(pair, "f", 10, &data) == 6);
	EXPECT(weft_blocking(skip_all, &pair->stream) == 0);
	EXPECT(peek_within(&pair->stream, WEFT_US(100)) == -ETIMEDOUT);
}

IO_TEST(gathered_bytes_may_be_skipped_in_any_thread)
{
	for_all_kinds(skip_elsewhere);
	return 0;
}

/* ---- Copying ------------------------------------------------------------- */

enum { MANY = 200000 };

static int64_t send_many(void *arg)
{
	struct pair *pair = *(struct pair **)arg;
	struct kit_sender sender = {
		.fd = pair->peer,
		.bytes = MANY,
		.chunk_max = 9000,
	}, *it = &sender;

	(void)kit_send(&it);
	pair_end(pair);
	return 0;
}

struct copy {
	struct pair *from, *to;
};

/* A part with a limit, and then the rest. */
static int64_t copy_many(void *arg)
{
	struct copy *copy = *(struct copy **)arg;
	struct weft_stream out = WEFT_STREAM_INIT(copy->to->peer);
	uint64_t done, rest;

	EXPECT(weft_stream_copy(&out, &copy->from->stream, 777, &done) == 0);
	EXPECT(done == 777);
	EXPECT(weft_stream_copy(&out, &copy->from->stream, UINT64_MAX, &rest) ==
	       0);
	EXPECT(done + rest == MANY);
	EXPECT(weft_stream_copy(&out, &copy->from->stream, 1, &done) == 0);
	EXPECT(done == 0);
	copy->to->peer = -1;
	EXPECT(weft_stream_close(&out) == 0);
	return 0;
}

static void check_many(struct weft_stream *stream)
{
	unsigned char bytes[1000];
	uint64_t at = 0;
	ssize_t n;

	while ((n = weft_stream_read(stream, bytes, sizeof(bytes))) > 0) {
		kit_check(bytes, (size_t)n, at);
		at += (uint64_t)n;
	}
	EXPECT(n == 0 && at == MANY);
}

static void copy_between(unsigned kind, unsigned kind_to)
{
	struct pair from, to;
	struct copy copy = { &from, &to };

	pair_open(&from, kind);
	pair_open(&to, kind_to);
	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, send_many, &from);
		kit_go(scope, copy_many, &copy);
		check_many(&to.stream);
	}
	pair_close(&from);
	pair_close(&to);
}

IO_TEST(copy_is_what_came)
{
	for (unsigned kind = 0; kind < 9; kind++)
		copy_between(kind / 3, kind % 3);
	return 0;
}

/* The rest is still there. */
IO_TEST(copy_that_fails_takes_only_what_was_written)
{
	struct pair from, to;
	struct weft_stream out;
	uint64_t done = 1;
	char bytes[4];

	pair_open(&from, 0);
	pair_open(&to, 0);
	weft_stream_init(&out, to.peer);
	pair_send(&from, "rest", 4);
	to.peer = -1;
	EXPECT(weft_stream_close(&to.stream) == 0);
	EXPECT(weft_stream_copy(&out, &from.stream, UINT64_MAX, &done) ==
	       -EPIPE);
	EXPECT(done == 0);
	WEFT_WITHIN (WEFT_SEC(20))
		EXPECT(weft_stream_read_all(&from.stream, bytes, 4, NULL) == 0);
	EXPECT(memcmp(bytes, "rest", 4) == 0);
	pair_close(&from);
	return weft_stream_close(&out);
}

int main(void)
{
	Suite *suite = suite_create("io/stream/until");
	TCase *tcase = tcase_create("until");

	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, delimiter_is_found_wherever_it_is_cut);
	io_add_test(tcase, limit_is_an_error_and_takes_nothing);
	io_add_test(tcase, end_without_the_delimiter_is_told);
	io_add_test(tcase, interrupted_wait_for_a_delimiter_loses_nothing);
	io_add_test(tcase, delimiter_that_cannot_be_is_refused);
	io_add_test(tcase, lines_come_whole_and_in_order);
	io_add_test(tcase, line_that_does_not_fit_is_an_error_and_stays);
	io_add_test(tcase, last_line_needs_no_room_for_an_end);
	io_add_test(tcase, gathered_bytes_may_be_skipped_in_any_thread);
	io_add_test(tcase, copy_is_what_came);
	io_add_test(tcase, copy_that_fails_takes_only_what_was_written);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}

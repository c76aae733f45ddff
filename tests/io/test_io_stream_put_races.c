/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/put/races: bytes that are put arrive completely and once,
 * however often a wait is interrupted; and a close waits for them no longer
 * than its deadline.
 */
#include "tests/support/stream_ways.h"

/* ---- Interrupted --------------------------------------------------------- */

struct putting {
	struct way *way;
	uint64_t at, random;
	unsigned interrupted;
};

/* One call, which may be interrupted, and is repeated later. */
static int64_t put_some(struct putting *putting)
{
	struct weft_stream *stream = &putting->way->stream;
	uint64_t left = putting->way->bytes - putting->at;
	unsigned char buf[WEFT__SEND_BUFFER_BYTES];
	const void *data;
	size_t n;
	int r;

	switch (kit_chance(&putting->random, 8)) {
	case 0:
		return weft_stream_flush(stream);
	case 1:
		return weft_stream_peek(stream, &data);
	default:
		n = 1 + kit_chance(&putting->random, sizeof(buf));
		n = n < left ? n : (size_t)left;
		kit_fill(buf, n, putting->at);
		r = weft_stream_put(stream, buf, n);
		if (r == 0)
			putting->at += n;
		return r;
	}
}

/* In all of the ways; where a task comes late there are few. */
static unsigned interruptions;

static void put_within(struct way *way)
{
	struct putting putting = { way, 0, 1, 0 };

	way_make_small(way);
	way->bytes = kit_rounds(8) * 50000;
	WEFT_SUPERVISE (scope) {
		kit_go(scope, sip, way);
		while (putting.at < way->bytes) {
			int64_t r = 0;

			WEFT_WITHIN (1 +
				     kit_chance(&putting.random, WEFT_US(60)))
				r = put_some(&putting);
			EXPECT(r == 0 || r == -ETIMEDOUT);
			putting.interrupted += r < 0;
		}
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	interruptions += putting.interrupted;
	way_end(way);
}

STREAM_TEST(put_that_times_out_loses_nothing)
{
	while (interruptions <= 10)
		go_all_ways(put_within);
	return 0;
}

static int64_t put_until_cancelled(void *arg)
{
	struct putting *putting = *(struct putting **)arg;
	int64_t r = 0;

	while (r == 0 && putting->at < putting->way->bytes)
		r = put_some(putting);
	EXPECT(r == 0 || r == -ECANCELED);
	putting->interrupted += r < 0;
	return 0;
}

/* A second task goes on to put where the first one was cancelled. */
static void put_in_turns(struct way *way)
{
	struct putting putting = { way, 0, 2, 0 };
	uint64_t random = 3;

	way_make_small(way);
	way->bytes = kit_rounds(8) * 50000;
	WEFT_SUPERVISE (scope) {
		kit_go(scope, sip, way);
		while (putting.at < way->bytes)
			WEFT_SUPERVISE (turn) {
				kit_go(turn, put_until_cancelled, &putting);
				EXPECT(weft_sleep(kit_chance(&random,
							     WEFT_US(100))) ==
				       0);
				weft_scope_cancel(turn);
			}
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	interruptions += putting.interrupted;
	way_end(way);
}

STREAM_TEST(put_that_is_cancelled_loses_nothing)
{
	while (interruptions <= 10)
		go_all_ways(put_in_turns);
	return 0;
}

/* Sends the same bytes again until there is room. */
static void wait_for_room(struct way *way)
{
	unsigned char buf[WEFT__SEND_BUFFER_BYTES];

	way->bytes = way_stuff(way);
	for (int i = 0; i < 2; i++) {
		put_bytes(way, sizeof(buf), way->bytes);
		way->bytes += sizeof(buf);
		EXPECT(peek_within(&way->stream, WEFT_US(50)) == -ETIMEDOUT);
	}
	kit_fill(buf, sizeof(buf), way->bytes);
	for (int i = 0; i < 6; i++)
		WEFT_WITHIN (WEFT_US(50)) {
			EXPECT(weft_stream_flush(&way->stream) == -ETIMEDOUT);
			EXPECT(weft_stream_put(&way->stream, buf,
					       sizeof(buf)) == -ETIMEDOUT);
		}
	way->bytes += sizeof(buf);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, receive, way);
		EXPECT(weft_stream_put(&way->stream, buf, sizeof(buf)) == 0);
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	expect_no_buffers(way);
	way_end(way);
}

STREAM_TEST(put_waits_for_room)
{
	go_all_ways(wait_for_room);
	return 0;
}

/* ---- Both at once -------------------------------------------------------- */

STREAM_TEST(reader_waits_for_room_and_input_at_once)
{
	go_all_ways(ask_first);
	return 0;
}

STREAM_TEST(reader_sends_all_while_it_waits)
{
	go_all_ways(answer_bit_by_bit);
	return 0;
}

/* ---- Closing ------------------------------------------------------------- */

/* Reads up to the end; returns the number of bytes. */
static uint64_t read_to_the_end(const struct way *way)
{
	unsigned char buf[5000];
	uint64_t at = 0;
	ssize_t n;

	while ((n = weft_read(way->peer, buf, sizeof(buf))) > 0) {
		kit_check(buf, (size_t)n, at);
		at += (uint64_t)n;
	}
	EXPECT(n == 0);
	return at;
}

static int64_t receive_to_the_end(void *arg)
{
	struct way *way = *(struct way **)arg;

	EXPECT(read_to_the_end(way) == way->bytes);
	return 0;
}

static void put_and_close(struct way *way)
{
	way->bytes = way_stuff(way);
	put_bytes(way, 4000, way->bytes);
	put_bytes(way, 4000, way->bytes + 4000);
	way->bytes += 8000;
	WEFT_SUPERVISE (scope) {
		kit_go(scope, receive_to_the_end, way);
		EXPECT(weft_stream_close(&way->stream) == 0);
	}
	EXPECT(weft_close(way->peer) == 0);
}

/* The second put waits for the first one. */
static void put_one_and_close(struct way *way)
{
	put_bytes(way, 3000, 0);
	EXPECT(weft_stream_close(&way->stream) == 0);
	EXPECT(read_to_the_end(way) == 3000);
	EXPECT(weft_close(way->peer) == 0);
}

STREAM_TEST(close_sends_what_was_put)
{
	go_all_ways(put_one_and_close);
	return 0;
}

STREAM_TEST(close_waits_for_what_was_put)
{
	for (int i = 0; i < 4; i++) {
		struct way way = { .tcp = i & 1, .nonblocking = i & 2 };

		go_one_way(&way, put_and_close);
	}
	return 0;
}

static int64_t close_cancelled(void *arg)
{
	struct way *way = *(struct way **)arg;

	WEFT_SHIELD {
		put_bytes(way, 3000, 0);
		EXPECT(weft_sleep(WEFT_US(10)) == 0);
	}
	EXPECT(weft_sleep(WEFT_SEC(3600)) == -ECANCELED);
	EXPECT(weft_stream_close(&way->stream) == 0);
	return 0;
}

static void put_and_close_cancelled(struct way *way)
{
	WEFT_SUPERVISE (scope) {
		kit_go(scope, close_cancelled, way);
		weft_scope_cancel(scope);
	}
	EXPECT(read_to_the_end(way) == 3000);
	EXPECT(weft_close(way->peer) == 0);
}

STREAM_TEST(cancelled_close_sends_what_fits)
{
	go_all_ways(put_and_close_cancelled);
	return 0;
}

/* The peer reads nothing.  The kernel has a part of the bytes that were put,
 * and the rest is held back. */
static void close_while_it_waits(struct way *way)
{
	uint64_t bytes = way_stuff(way), got;

	put_bytes(way, 4000, bytes);
	EXPECT(peek_within(&way->stream, WEFT_US(20)) == -ETIMEDOUT);
	put_bytes(way, 4000, bytes + 4000);
	WEFT_WITHIN (WEFT_MS(2))
		EXPECT(weft_stream_close(&way->stream) == -ETIMEDOUT);
	EXPECT(fcntl(way->fd, F_GETFD) < 0);
	got = read_to_the_end(way);
	EXPECT(got >= bytes && got < bytes + 8000);
	EXPECT(weft_close(way->peer) == 0);
}

STREAM_TEST(close_waits_no_longer_than_it_may)
{
	go_all_ways(close_while_it_waits);
	return 0;
}

static int64_t read_some(void *arg)
{
	struct way *way = *(struct way **)arg;

	(void)read_to_the_end(way);
	return 0;
}

/* The peer begins to read while the stream is closed. */
static void close_while_it_is_sent(struct way *way)
{
	uint64_t bytes = way_stuff(way), random = bytes + (uint64_t)way->fd;

	put_bytes(way, 4000, bytes);
	EXPECT(peek_within(&way->stream, WEFT_US(20)) == -ETIMEDOUT);
	put_bytes(way, 1 + kit_chance(&random, 4000), bytes + 4000);
	WEFT_SUPERVISE (scope) {
		int r = 0;

		kit_go(scope, read_some, way);
		WEFT_WITHIN (1 + kit_chance(&random, WEFT_US(60)))
			r = weft_stream_close(&way->stream);
		EXPECT(r == 0 || r == -ETIMEDOUT);
	}
	EXPECT(weft_close(way->peer) == 0);
}

STREAM_TEST(close_meets_the_end_of_the_send)
{
	/* TCP notices that there is room only after 200 ms, so few rounds use
	 * it. */
	for (unsigned i = 0; i < kit_rounds(150); i++) {
		struct way way = { .busy = i & 1,
				   .nonblocking = i & 2,
				   .tcp = i % 64 == 0 };

		go_one_way(&way, close_while_it_is_sent);
	}
	return 0;
}

/* ---- Gone ---------------------------------------------------------------- */

static bool is_gone(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

static void put_to_nobody(struct way *way)
{
	static char bytes[100 << 10];
	const void *data;
	int r = 0;

	EXPECT(weft_write_all(way->peer, "last", 4, NULL) == 0);
	EXPECT(weft_stream_peek(&way->stream, &data) == 4);
	EXPECT(weft_close(way->peer) == 0);
	for (int i = 0; i < 10000 && r == 0; i++) {
		EXPECT(weft_stream_put(&way->stream, "x", 1) == 0);
		r = weft_stream_flush(&way->stream);
	}
	EXPECT(is_gone(r));
	for (int i = 0; i < 3; i++) {
		EXPECT(weft_stream_put(&way->stream, "x", 1) == r);
		EXPECT(weft_stream_put(&way->stream, bytes, sizeof(bytes)) ==
		       r);
		EXPECT(weft_stream_flush(&way->stream) == r);
		expect_no_buffers(way);
	}
	EXPECT(weft_stream_peek(&way->stream, &data) == 4);
	EXPECT(memcmp(data, "last", 4) == 0);
	weft_stream_skip(&way->stream, 4);
	for (int i = 0; i < 3; i++) {
		int64_t n = weft_stream_peek(&way->stream, &data);

		EXPECT(n == 0 || n == r);
	}
	EXPECT(weft_stream_close(&way->stream) == r);
}

STREAM_TEST(peer_that_is_gone_is_told_for_ever)
{
	go_all_ways(put_to_nobody);
	return 0;
}

static int64_t leave_soon(void *arg)
{
	struct way *way = *(struct way **)arg;

	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return weft_close(way->peer);
}

/* The peer leaves while bytes are being sent: the next call returns the
 * error. */
static void peer_leaves(struct way *way)
{
	const void *data;

	put_bytes(way, 100, way_stuff(way));
	WEFT_SUPERVISE (scope) {
		int64_t n;

		kit_go(scope, leave_soon, way);
		n = weft_stream_peek(&way->stream, &data);
		EXPECT(n == 0 || is_gone((int)n));
	}
	EXPECT(is_gone(weft_stream_flush(&way->stream)));
	EXPECT(is_gone(weft_stream_close(&way->stream)));
}

STREAM_TEST(peer_may_go_while_it_is_sent)
{
	go_all_ways(peer_leaves);
	return 0;
}

/* ---- All together -------------------------------------------------------- */

enum { CONNECTIONS = 100, MESSAGE_MAX = 9000 };

static int64_t echo(void *arg)
{
	int fd = (int)(intptr_t) * (void **)arg;
	struct weft_stream stream = WEFT_STREAM_INIT(fd);
	uint64_t random = (uint64_t)fd;
	const void *data;
	ssize_t n;

	for (;;) {
		int r = -ETIMEDOUT;

		n = weft_stream_peek(&stream, &data);
		if (n <= 0)
			break;
		if (kit_chance(&random, 3))
			n = 1 + (ssize_t)kit_chance(&random, (unsigned)n);
		/* Longer puts cannot be taken back when a deadline passes. */
		n = n < WEFT__SEND_BUFFER_BYTES ? n : WEFT__SEND_BUFFER_BYTES;
		while (r == -ETIMEDOUT)
			WEFT_WITHIN (1 + kit_chance(&random, WEFT_MS(1)))
				r = weft_stream_put(&stream, data, (size_t)n);
		EXPECT(r == 0);
		weft_stream_skip(&stream, (size_t)n);
		if (kit_chance(&random, 8) == 0)
			WEFT_WITHIN (1 + kit_chance(&random, WEFT_US(50)))
				r = weft_stream_flush(&stream);
		EXPECT(r == 0 || r == -ETIMEDOUT);
	}
	EXPECT(n == 0);
	return weft_stream_close(&stream);
}

static void ask(struct weft_stream *stream, uint64_t at, uint64_t *random)
{
	unsigned char message[MESSAGE_MAX];
	size_t count = 1 + kit_chance(random, MESSAGE_MAX);
	size_t first = kit_chance(random, (unsigned)count);
	uint64_t until = at + count;

	kit_fill(message, count, at);
	EXPECT(weft_stream_put(stream, message, first) == 0);
	EXPECT(weft_stream_put(stream, message + first, count - first) == 0);
	while (at < until) {
		ssize_t n = 0;

		WEFT_WITHIN (1 + kit_chance(random, WEFT_MS(2)))
			n = kit_take(stream, at, random);
		EXPECT(n > 0 || n == -ETIMEDOUT);
		at += n > 0 ? (uint64_t)n : 0;
		EXPECT(at <= until);
	}
}

static int64_t ask_often(void *arg)
{
	int fd = (int)(intptr_t) * (void **)arg;
	struct weft_stream stream = WEFT_STREAM_INIT(fd);
	uint64_t random = (uint64_t)fd;

	/* Each connection has its own range of bytes. */
	for (unsigned i = 0; i < kit_rounds(100); i++)
		ask(&stream, random << 20, &random);
	return weft_stream_close(&stream);
}

STREAM_TEST(many_put_at_once)
{
	int64_t result = -1;

	WEFT_SCOPE (scope, &result)
		for (int i = 0; i < CONNECTIONS; i++) {
			int fds[2];

			kit_pair(fds, i % 2);
			if (i % 4 < 2)
				kit_make_small(fds);
			if (i % 8 < 4)
				EXPECT(fcntl(fds[i / 8 % 2], F_SETFL,
					     O_NONBLOCK) == 0);
			kit_go(scope, echo, (void *)(intptr_t)fds[0]);
			kit_go(scope, ask_often, (void *)(intptr_t)fds[1]);
		}
	ck_assert_int_eq(result, 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/stream_put_races");
	TCase *interrupted = tcase_create("interrupted");
	TCase *both = tcase_create("both at once");
	TCase *closing = tcase_create("closing");
	TCase *gone = tcase_create("gone");
	TCase *all = tcase_create("all at once");

	tcase_set_timeout(interrupted, 120);
	tcase_set_timeout(all, 120);
	stream_add_test(interrupted, put_that_times_out_loses_nothing);
	stream_add_test(interrupted, put_that_is_cancelled_loses_nothing);
	stream_add_test(interrupted, put_waits_for_room);
	stream_add_test(both, reader_waits_for_room_and_input_at_once);
	stream_add_test(both, reader_sends_all_while_it_waits);
	stream_add_test(closing, close_sends_what_was_put);
	stream_add_test(closing, close_waits_for_what_was_put);
	stream_add_test(closing, cancelled_close_sends_what_fits);
	stream_add_test(closing, close_waits_no_longer_than_it_may);
	stream_add_test(closing, close_meets_the_end_of_the_send);
	stream_add_test(gone, peer_that_is_gone_is_told_for_ever);
	stream_add_test(gone, peer_may_go_while_it_is_sent);
	stream_add_test(all, many_put_at_once);
	suite_add_tcase(suite, interrupted);
	suite_add_tcase(suite, both);
	suite_add_tcase(suite, closing);
	suite_add_tcase(suite, gone);
	suite_add_tcase(suite, all);
	return io_tests_run(suite);
}

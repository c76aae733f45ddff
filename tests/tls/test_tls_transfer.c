/* SPDX-License-Identifier: MIT */
/*
 * Suite tls/transfer: bytes over TLS, both ways and in all sizes, in one piece
 * and byte by byte, with keys that change; and how a connection ends.
 */
#include "tests/tls/tls_kit.h"

static const uint32_t versions[] = { WEFT_TLS_1_2, WEFT_TLS_1_3 };

#define EACH_VERSION(v) \
	for (const uint32_t *v = versions; v < versions + 2; v++)

/* ---- Bytes --------------------------------------------------------------- */

IO_TEST(bytes_arrive_in_order_both_ways)
{
	EACH_VERSION(version)
	{
		struct ends ends;

		join_ends(&ends, *version);
		flow_both_ways(&ends, kit_rounds(800) * 1000, 40000, false);
		flow_both_ways(&ends, 3000, 20, false);
		part(&ends);
	}
	return 0;
}

IO_TEST(keys_change_while_bytes_flow)
{
	struct ends ends;

	join_ends(&ends, WEFT_TLS_1_3);
	flow_both_ways(&ends, kit_rounds(400) * 1000, 9000, true);
	part(&ends);
	join_ends(&ends, WEFT_TLS_1_2);
	EXPECT(weft_tls_update_keys(&ends.end[0].tls) == -EOPNOTSUPP);
	pass_on(&ends, 0, "goes on");
	part(&ends);
	return 0;
}

/* All calls of a stream work, as on any other. */
IO_TEST(stream_is_as_any_other)
{
	const struct iovec pieces[] = { { WEFT__MUTABLE("one "), 4 },
					{ WEFT__MUTABLE("two\n"), 4 } };
	const void *data;
	struct ends ends;
	uint64_t copied;
	char line[20];

	join_ends(&ends, 0);
	EXPECT(weft_stream_fd(stream_of(&ends, 0)) == -1);
	EXPECT(weft_stream_putv(stream_of(&ends, 0), pieces, 2) == 0);
	EXPECT(weft_stream_put(stream_of(&ends, 0), "three;four", 10) == 0);
	EXPECT(weft_stream_flush(stream_of(&ends, 0)) == 0);
	EXPECT(weft_stream_line(stream_of(&ends, 1), line, sizeof(line)) == 8);
	EXPECT(strcmp(line, "one two\n") == 0);
	EXPECT(weft_stream_until(stream_of(&ends, 1), ";", 1, 100, &data) == 6);
	weft_stream_skip(stream_of(&ends, 1), 6);
	EXPECT(weft_stream_copy(stream_of(&ends, 1), stream_of(&ends, 1), 4,
				&copied) == 0);
	EXPECT(copied == 4);
	EXPECT(weft_stream_read_all(stream_of(&ends, 0), line, 4, NULL) == 0);
	EXPECT(memcmp(line, "four", 4) == 0);
	EXPECT(weft_stream_write_all(stream_of(&ends, 0), "", 0, NULL) == 0);
	part(&ends);
	return 0;
}

/* A stream that gives one byte at a time. */
static ssize_t trickle_read(void *arg, void *buf, size_t bytes)
{
	(void)bytes;
	return weft_stream_read(arg, buf, 1);
}

static int trickle_write_all(void *arg, const void *buf, size_t bytes,
			     size_t *ret_done)
{
	return weft_stream_write_all(arg, buf, bytes, ret_done);
}

static int trickle_close(void *arg)
{
	return weft_stream_close(arg);
}

static const struct weft_stream_ops trickle = {
	.read = trickle_read,
	.write_all = trickle_write_all,
	.close = trickle_close,
};

/* In place of OpenSSL's, whose older versions release the buffer of a record
 * that has only begun. */
static weft__atomic(unsigned) releases, releases_too_early;

int SSL_free_buffers(SSL *ssl)
{
	/* relaxed: counts. */
	weft__add(&releases, 1u, relaxed);
	if (SSL_has_pending(ssl) || strcmp(SSL_rstate_string(ssl), "RH") != 0)
		weft__add(&releases_too_early, 1u, relaxed);
	return 1;
}

IO_TEST(records_arrive_one_byte_at_a_time)
{
	EACH_VERSION(version)
	{
		struct weft_stream below[2];
		struct ends ends = { .fds = { 0 } };

		give_contexts(&ends, *version);
		tcp_pair(ends.fds);
		for (int i = 0; i < 2; i++) {
			weft_stream_init(&below[i], ends.fds[i]);
			weft_stream_init_over(&ends.end[i].below, &trickle,
					      &below[i]);
		}
		shake_hands(&ends);
		EXPECT(ends.end[0].r == 0 && ends.end[1].r == 0);
		flow_both_ways(&ends, kit_rounds(40) * 1000, 20000, false);
		part(&ends);
	}
	/* relaxed: the tasks have ended. */
	EXPECT(weft__load(&releases, relaxed) > 0);
	EXPECT(weft__load(&releases_too_early, relaxed) == 0);
	return 0;
}

/* TLS over TLS, as a proxy has it. */
IO_TEST(connection_runs_over_another)
{
	struct ends outer, inner = { .fds = { 0 } };

	join_ends(&outer, WEFT_TLS_1_3);
	give_contexts(&inner, WEFT_TLS_1_2);
	for (int i = 0; i < 2; i++)
		inner.end[i].below = *stream_of(&outer, i);
	shake_hands(&inner);
	EXPECT(inner.end[0].r == 0 && inner.end[1].r == 0);
	flow_both_ways(&inner, kit_rounds(100) * 1000, 5000, false);
	part(&inner);
	free_contexts(&outer);
	return 0;
}

/* One of two that write much before they read. */
struct talker {
	struct weft_stream *stream;
	size_t bytes;
};

static int64_t write_much(void *arg)
{
	struct talker *talker = *(struct talker **)arg;
	char *bytes = calloc(1, talker->bytes);

	EXPECT(bytes);
	EXPECT(weft_stream_write_all(talker->stream, bytes, talker->bytes,
				     NULL) == 0);
	free(bytes);
	return 0;
}

/* The byte that is put waits for its turn behind what the other task writes,
 * which the peer takes when it reads. */
static int64_t put_and_read_all(void *arg)
{
	struct talker *talker = *(struct talker **)arg;
	size_t done = 0, put = 0;
	const char *data;
	ssize_t n;

	EXPECT(weft_stream_put(talker->stream, "x", 1) == 0);
	while (done <= talker->bytes) {
		n = weft_stream_peek(talker->stream, (const void **)&data);
		ck_assert_int_gt(n, 0);
		for (ssize_t i = 0; i < n; i++)
			put += data[i] == 'x';
		weft_stream_skip(talker->stream, (size_t)n);
		done += (size_t)n;
	}
	EXPECT(done == talker->bytes + 1 && put == 1);
	return weft_stream_flush(talker->stream);
}

IO_TEST(readers_that_have_put_something_read_meanwhile)
{
	enum { MUCH = 512 << 10 };
	struct talker talkers[2];
	struct ends ends;

	join_ends(&ends, 0);
	kit_make_small(ends.fds);
	WEFT_SCOPE (scope, NULL) {
		for (int i = 0; i < 2; i++) {
			talkers[i] =
				(struct talker){ stream_of(&ends, i), MUCH };
			kit_go(scope, write_much, &talkers[i]);
		}
		/* They have begun, but for a slow machine. */
		EXPECT(weft_sleep(WEFT_MS(5)) == 0);
		for (int i = 0; i < 2; i++)
			kit_go(scope, put_and_read_all, &talkers[i]);
	}
	part(&ends);
	return 0;
}

enum { CROWD = 24 };

static int64_t one_of_many(void *arg)
{
	struct ends *ends = *(struct ends **)arg;
	struct ends mine = { .fds = { 0 } };

	mine.end[0].context = ends->end[0].context;
	mine.end[1].context = ends->end[1].context;
	meet(&mine, 0);
	EXPECT(mine.end[0].r == 0 && mine.end[1].r == 0);
	flow_both_ways(&mine, kit_rounds(30) * 1000, 2000, true);
	part(&mine);
	return 0;
}

/* Each has four tasks, which change their workers as these like. */
IO_TEST(many_connections_share_contexts)
{
	struct ends ends = { .fds = { 0 } };

	give_contexts(&ends, 0);
	WEFT_SCOPE (scope, NULL)
		for (unsigned i = 0; i < kit_rounds(CROWD); i++)
			kit_go(scope, one_of_many, &ends);
	free_contexts(&ends);
	return 0;
}

/* ---- The end ------------------------------------------------------------- */

IO_TEST(close_is_the_end_for_the_peer)
{
	EACH_VERSION(version)
	{
		const void *data;
		struct ends ends;

		join_ends(&ends, *version);
		EXPECT(weft_stream_put(stream_of(&ends, 0), "bye", 3) == 0);
		EXPECT(weft_stream_close(stream_of(&ends, 0)) == 0);
		EXPECT(weft_stream_peek(stream_of(&ends, 1), &data) == 3);
		weft_stream_skip(stream_of(&ends, 1), 3);
		EXPECT(weft_stream_peek(stream_of(&ends, 1), &data) == 0);
		EXPECT(weft_stream_peek(stream_of(&ends, 1), &data) == 0);
		EXPECT(weft_tls_error(&ends.end[1].tls)[0] == '\0');
		EXPECT(weft_stream_close(stream_of(&ends, 1)) == 0);
		free_contexts(&ends);
	}
	return 0;
}

IO_TEST(half_of_a_connection_is_closed)
{
	EACH_VERSION(version)
	{
		const void *data;
		struct ends ends;

		join_ends(&ends, *version);
		EXPECT(weft_tls_shutdown(&ends.end[0].tls) == 0);
		EXPECT(weft_tls_shutdown(&ends.end[0].tls) == 0);
		EXPECT(weft_stream_write_all(stream_of(&ends, 0), "x", 1,
					     NULL) == -EPIPE);
		EXPECT(weft_stream_peek(stream_of(&ends, 1), &data) == 0);
		pass_on(&ends, 1, "still there");
		EXPECT(weft_stream_close(stream_of(&ends, 1)) == 0);
		EXPECT(weft_stream_peek(stream_of(&ends, 0), &data) == 0);
		EXPECT(weft_stream_close(stream_of(&ends, 0)) == 0);
		free_contexts(&ends);
	}
	return 0;
}

/* An attacker may cut a connection, but not end it. */
IO_TEST(stream_that_is_cut_off_is_an_error)
{
	EACH_VERSION(version)
	{
		const void *data;
		struct ends ends;

		join_ends(&ends, *version);
		pass_on(&ends, 1, "first");
		EXPECT(weft_shutdown(ends.fds[1], SHUT_WR) == 0);
		for (int i = 0; i < 2; i++)
			EXPECT(weft_stream_peek(stream_of(&ends, 0), &data) ==
			       -ECONNRESET);
		EXPECT(strstr(weft_tls_error(&ends.end[0].tls),
			      "without close_notify"));
		expect_no_notes();
		part(&ends);
	}
	return 0;
}

/* Bytes that somebody has changed. */
IO_TEST(record_that_was_changed_is_an_error)
{
	EACH_VERSION(version)
	{
		static const char record[] = "\x17\x03\x03\x00\x20"
					     "these are not its 32 bytes......";
		const void *data;
		struct ends ends;
		size_t done = 9;

		join_ends(&ends, *version);
		EXPECT(weft_write_all(ends.fds[0], record, sizeof(record) - 1,
				      NULL) == 0);
		for (int i = 0; i < 2; i++)
			EXPECT(weft_stream_peek(stream_of(&ends, 1), &data) ==
			       -EPROTO);
		expect_no_notes();
		EXPECT(weft_tls_error(&ends.end[1].tls)[0]);
		EXPECT(weft_stream_write_all(stream_of(&ends, 1), "x", 1,
					     &done) == -EPROTO);
		EXPECT(done == 0);
		/* It was told. */
		EXPECT(weft_stream_peek(stream_of(&ends, 0), &data) == -EPROTO);
		EXPECT(weft_tls_update_keys(&ends.end[1].tls) == -EPROTO);
		EXPECT(weft_tls_shutdown(&ends.end[1].tls) == -EPROTO);
		part(&ends);
	}
	return 0;
}

/* The reader may still find what came before. */
IO_TEST(peer_that_is_gone_is_an_error_of_writes)
{
	struct ends ends;
	int r = 0;

	join_ends(&ends, 0);
	EXPECT(weft_stream_close(stream_of(&ends, 1)) == 0);
	for (int i = 0; r == 0 && i < 1000; i++)
		r = weft_stream_write_all(stream_of(&ends, 0), "x", 1, NULL);
	EXPECT(r == -EPIPE || r == -ECONNRESET);
	EXPECT(weft_stream_write_all(stream_of(&ends, 0), "x", 1, NULL) == r);
	(void)weft_stream_close(stream_of(&ends, 0));
	free_contexts(&ends);
	return 0;
}

IO_TEST(close_below_is_reported)
{
	struct ends ends;

	join_ends(&ends, 0);
	EXPECT(close(ends.fds[0]) == 0);
	EXPECT(weft_stream_close(stream_of(&ends, 0)) == -EBADF);
	EXPECT(weft_stream_close(stream_of(&ends, 1)) == 0);
	free_contexts(&ends);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("tls/transfer");
	TCase *bytes = tcase_create("bytes");
	TCase *end = tcase_create("end");

	tcase_set_timeout(bytes, 60);
	tcase_set_timeout(end, 60);
	io_add_test(bytes, bytes_arrive_in_order_both_ways);
	io_add_test(bytes, keys_change_while_bytes_flow);
	io_add_test(bytes, stream_is_as_any_other);
	io_add_test(bytes, records_arrive_one_byte_at_a_time);
	io_add_test(bytes, connection_runs_over_another);
	io_add_test(bytes, many_connections_share_contexts);
	io_add_test(bytes, readers_that_have_put_something_read_meanwhile);
	io_add_test(end, close_is_the_end_for_the_peer);
	io_add_test(end, half_of_a_connection_is_closed);
	io_add_test(end, stream_that_is_cut_off_is_an_error);
	io_add_test(end, record_that_was_changed_is_an_error);
	io_add_test(end, peer_that_is_gone_is_an_error_of_writes);
	io_add_test(end, close_below_is_reported);
	suite_add_tcase(suite, bytes);
	suite_add_tcase(suite, end);
	return tls_tests_run(suite);
}

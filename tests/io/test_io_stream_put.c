/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/put: bytes that are put are sent when the stream waits, and
 * not before, in order and once; the call returns an error when it cannot do
 * that.
 */
#include "tests/support/needs.h"
#include "tests/support/stream_ways.h"

/* ---- When ---------------------------------------------------------------- */

/* Reads an answer, then puts the next request. */
static int64_t get_and_ask(void *arg)
{
	struct way *way = *(struct way **)arg;
	char answer[6];

	EXPECT(weft_read_all(way->peer, answer, sizeof(answer), NULL) == 0);
	EXPECT(memcmp(answer, "answer", sizeof(answer)) == 0);
	EXPECT(weft_write_all(way->peer, "next", 4, NULL) == 0);
	return 0;
}

static void put_and_peek(struct way *way)
{
	for (int i = 0; i < 5; i++) {
		const void *data;

		EXPECT(weft_stream_put(&way->stream, "ans", 3) == 0);
		EXPECT(weft_stream_put(&way->stream, "wer", 3) == 0);
		EXPECT(weft_yield() == 0);
		expect_nothing_there(way);
		WEFT_SUPERVISE (scope) {
			kit_go(scope, get_and_ask, way);
			EXPECT(weft_stream_peek(&way->stream, &data) == 4);
		}
		weft_stream_skip(&way->stream, 4);
	}
	EXPECT(weft_stream_flush(&way->stream) == 0);
	expect_no_buffers(way);
	way_end(way);
}

STREAM_TEST(what_is_put_is_sent_when_the_reader_waits)
{
	go_all_ways(put_and_peek);
	return 0;
}

static uint64_t ops_given(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	return stats.total.ops;
}

enum { REQUESTS = 10 };

/* Each byte is a request; an answer is two bytes. */
static void answer_all(struct way *way, uint64_t at)
{
	for (unsigned i = 0; i < REQUESTS; i++) {
		const void *data;

		EXPECT(weft_stream_peek(&way->stream, &data) > 0);
		put_bytes(way, 2, at + 2 * i);
		weft_stream_skip(&way->stream, 1);
		expect_nothing_there(way);
	}
}

static void answer_together(struct way *way)
{
	kit_warm_up(&way->stream, way->peer);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t ops;

		EXPECT(write(way->peer, "requests..", REQUESTS) == REQUESTS);
		answer_all(way, i);
		ops = ops_given();
		EXPECT(weft_stream_flush(&way->stream) == 0);
		EXPECT(ops_given() - ops <= 1);
		expect_there(way, 2 * REQUESTS, i);
	}
	way_end(way);
}

STREAM_TEST(answers_leave_together)
{
	go_all_ways(answer_together);
	return 0;
}

/* The bytes that one send takes arrive as one message. */
static void answer_one_message(struct way *way)
{
	int fds[2];

	way_end(way);
	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	way->peer = fds[1];
	weft_stream_init(&way->stream, fds[0]);
	for (unsigned i = 0; i < 5; i++) {
		EXPECT(write(way->peer, "requests..", REQUESTS) == REQUESTS);
		answer_all(way, i);
		EXPECT(peek_within(&way->stream, WEFT_US(50)) == -ETIMEDOUT);
		EXPECT(weft_stream_flush(&way->stream) == 0);
		expect_there(way, 2 * REQUESTS, i);
		expect_nothing_there(way);
	}
	way_end(way);
}

STREAM_TEST(answers_are_one_send)
{
	go_all_ways(answer_one_message);
	return 0;
}

static void put_and_flush(struct way *way)
{
	EXPECT(weft_stream_flush(&way->stream) == 0);
	for (unsigned i = 0; i < 20; i++) {
		put_bytes(way, 200 * i, i);
		EXPECT(weft_stream_put(&way->stream, "", 0) == 0);
		expect_nothing_there(way);
		EXPECT(weft_stream_flush(&way->stream) == 0);
		expect_no_buffers(way);
		if (i > 0)
			expect_there(way, 200 * i, i);
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	expect_nothing_there(way);
	way_end(way);
}

STREAM_TEST(flush_sends_what_was_put)
{
	go_all_ways(put_and_flush);
	return 0;
}

/* ---- How much ------------------------------------------------------------ */

static const size_t lengths[] = {
	1, 4096, 1,	    4095, 1, 4097, 4096, 4096,
	0, 5,	 100 << 10, 4096, 1, 8192, 3000, 3000
};

static void put_lengths(struct way *way)
{
	const size_t count = sizeof(lengths) / sizeof(lengths[0]);

	for (size_t i = 0; i < count; i++)
		way->bytes += lengths[i];
	WEFT_SUPERVISE (scope) {
		uint64_t at = 0;

		kit_go(scope, receive, way);
		for (size_t i = 0; i < count; at += lengths[i++])
			put_bytes(way, lengths[i], at);
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	way_end(way);
}

STREAM_TEST(any_length_may_be_put)
{
	go_all_ways(put_lengths);
	return 0;
}

/* The buffer takes as many bytes as it has room for; the next byte makes it
 * go. */
static void put_until_full(struct way *way)
{
	put_bytes(way, 1, 0);
	put_bytes(way, WEFT__SEND_BUFFER_BYTES - 1, 1);
	EXPECT(weft_yield() == 0);
	expect_nothing_there(way);
	put_bytes(way, 1, WEFT__SEND_BUFFER_BYTES);
	wait_until(kit_unreceived(way->peer) == WEFT__SEND_BUFFER_BYTES);
	EXPECT(weft_stream_flush(&way->stream) == 0);
	expect_there(way, WEFT__SEND_BUFFER_BYTES + 1, 0);
	way_end(way);
}

STREAM_TEST(buffer_that_is_full_goes_out)
{
	for (int busy = 0; busy < 2; busy++) {
		struct way way = { .busy = busy };

		/* TCP may hold the bytes back for a moment, because more are
		 * coming. */
		go_one_way(&way, put_until_full);
	}
	return 0;
}

static void put_many(struct way *way)
{
	uint64_t at = 0, random = 1;

	way_make_small(way);
	way->bytes = kit_rounds(16) * 200000;
	WEFT_SUPERVISE (scope) {
		kit_go(scope, sip, way);
		while (at < way->bytes) {
			size_t n = 1 + kit_chance(&random, 300);

			if (n > way->bytes - at)
				n = (size_t)(way->bytes - at);
			put_bytes(way, n, at);
			at += n;
		}
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	way_end(way);
}

STREAM_TEST(slow_peer_holds_up_who_puts)
{
	go_all_ways(put_many);
	return 0;
}

/* ---- Beside other senders ------------------------------------------------ */

static void put_and_write(struct way *way)
{
	uint64_t at = 0, random = 1;

	way_make_small(way);
	way->bytes = kit_rounds(8) * 30000;
	WEFT_SUPERVISE (scope) {
		kit_go(scope, sip, way);
		while (at < way->bytes) {
			unsigned char buf[6000];
			size_t n = 1 + kit_chance(&random, sizeof(buf));

			if (n > way->bytes - at)
				n = (size_t)(way->bytes - at);
			kit_fill(buf, n, at);
			EXPECT((kit_chance(&random, 3) ?
					weft_stream_put(&way->stream, buf, n) :
					weft_stream_write_all(&way->stream, buf,
							      n, NULL)) == 0);
			at += n;
		}
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	way_end(way);
}

STREAM_TEST(write_follows_what_its_task_has_put)
{
	go_all_ways(put_and_write);
	return 0;
}

enum { RECORD = 64, RECORDS = 100 };

static int64_t write_records(void *arg)
{
	struct way *way = *(struct way **)arg;
	char record[RECORD];

	memset(record, 'w', RECORD);
	for (int i = 0; i < RECORDS; i++) {
		EXPECT(weft_stream_write_all(&way->stream, record, RECORD,
					     NULL) == 0);
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

/* Each record comes from one sender. */
static void expect_whole_records(struct way *way, const char *senders)
{
	char record[RECORD];
	int counts[128] = { 0 };

	for (size_t i = 0; i < RECORDS * strlen(senders); i++) {
		EXPECT(weft_read_all(way->peer, record, RECORD, NULL) == 0);
		for (int j = 1; j < RECORD; j++)
			EXPECT(record[j] == record[0]);
		counts[record[0] & 127]++;
	}
	for (; *senders; senders++)
		EXPECT(counts[*senders & 127] == RECORDS);
}

/* The socket has room for all records, so each is sent in one piece. */
static void put_while_another_writes(struct way *way)
{
	char record[RECORD];

	memset(record, 'p', RECORD);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, write_records, way);
		for (int i = 0; i < RECORDS; i++) {
			EXPECT(weft_stream_put(&way->stream, record, RECORD) ==
			       0);
			if (i % 3 == 0)
				EXPECT(peek_within(&way->stream, WEFT_US(20)) ==
				       -ETIMEDOUT);
		}
		EXPECT(weft_stream_flush(&way->stream) == 0);
	}
	expect_whole_records(way, "pw");
	expect_nothing_there(way);
	way_end(way);
}

STREAM_TEST(others_write_beside_what_is_put)
{
	go_all_ways(put_while_another_writes);
	return 0;
}

/* Other tasks' writes do not send what this task has put. */
static void write_without_what_is_put(struct way *way)
{
	EXPECT(weft_stream_put(&way->stream, "p", 1) == 0);
	WEFT_SUPERVISE (scope)
		kit_go(scope, write_records, way);
	expect_whole_records(way, "w");
	expect_nothing_there(way);
	way_end(way);
}

STREAM_TEST(others_do_not_send_what_is_put)
{
	go_all_ways(write_without_what_is_put);
	return 0;
}

/* ---- Buffers ------------------------------------------------------------- */

enum { HOLDERS = 3 * WEFT__SEND_BUFFERS_MAX };

static uint32_t outs_kept(void)
{
	uint32_t max = 0;

	for (unsigned i = 0; i < weft_runtime_self()->workers_count; i++) {
		struct weft__send_buffers *outs =
			&weft__shard(weft_runtime_self()->workers[i])->outs;
		uint32_t count = 0;

		for (struct weft__send_buffer *o = outs->first; o; o = o->next)
			count++;
		EXPECT(count == outs->count);
		max = count > max ? count : max;
	}
	return max;
}

static void hold_many(struct way *ways)
{
	for (int i = 0; i < HOLDERS; i++) {
		int fds[2];

		socket_pair(fds);
		ways[i].peer = fds[1];
		weft_stream_init(&ways[i].stream, fds[0]);
		EXPECT(weft_stream_put(&ways[i].stream, "x", 1) == 0);
		EXPECT(weft__stream(&ways[i].stream)->out != NULL);
	}
	for (int i = 0; i < HOLDERS; i++) {
		EXPECT(weft_stream_flush(&ways[i].stream) == 0);
		expect_no_buffers(&ways[i]);
		EXPECT(outs_kept() <= WEFT__SEND_BUFFERS_MAX);
	}
}

static int64_t hold_many_pinned(void *arg)
{
	struct way *ways = calloc(HOLDERS, sizeof(*ways));

	(void)arg;
	EXPECT(ways != NULL);
	hold_many(ways);
	EXPECT(outs_kept() > 0);
	for (int i = 0; i < HOLDERS; i++)
		way_end(&ways[i]);
	free(ways);
	return 0;
}

STREAM_TEST(few_buffers_are_kept)
{
	WEFT_SUPERVISE (scope)
		kit_go_pinned(scope, hold_many_pinned, NULL);
	return 0;
}

/* The buffer that was given back last, whose memory is still in the cache, is
 * used again first. */
static int64_t take_again(void *arg)
{
	struct weft__send_buffers *outs =
		&weft__shard(weft__worker_self())->outs;
	struct way *way = *(struct way **)arg;

	for (int i = 0; i < 100; i++) {
		struct weft__send_buffer *out;

		EXPECT(weft_stream_put(&way->stream, "x", 1) == 0);
		out = weft__stream(&way->stream)->out;
		EXPECT(weft_stream_flush(&way->stream) == 0);
		EXPECT(outs->first == out);
	}
	return 0;
}

static void put_pinned(struct way *way)
{
	WEFT_SUPERVISE (scope)
		kit_go_pinned(scope, take_again, way);
	way_end(way);
}

static int64_t last_first(void *arg)
{
	(void)arg;
	go_all_ways(put_pinned);
	return 0;
}

START_TEST(last_buffer_is_the_next)
{
	kit_run(last_first, 1);
}
END_TEST

/* ---- Invalid use --------------------------------------------------------- */

static void put_nothing(struct way *way)
{
	for (int i = 0; i < 3; i++) {
		EXPECT(weft_stream_put(&way->stream, "", 0) == 0);
		EXPECT(peek_within(&way->stream, WEFT_US(10)) == -ETIMEDOUT);
	}
	EXPECT(weft_stream_flush(&way->stream) == 0);
	expect_no_buffers(way);
	expect_nothing_there(way);
	way_end(way);
}

STREAM_TEST(nothing_may_be_put)
{
	go_all_ways(put_nothing);
	return 0;
}

static void expect_error(int fd, int error)
{
	struct weft_stream stream = WEFT_STREAM_INIT(fd);

	EXPECT(weft_stream_put(&stream, "x", 1) == 0);
	for (int i = 0; i < 3; i++) {
		EXPECT(weft_stream_flush(&stream) == error);
		EXPECT(weft_stream_put(&stream, "x", 1) == error);
	}
	EXPECT(weft_stream_close(&stream) == error);
}

STREAM_TEST(descriptor_that_cannot_be_written_is_told)
{
	int fds[2];

	expect_error(-1, -EBADF);
	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	expect_error(fds[0], -EBADF);
	return weft_close(fds[1]);
}

START_TEST(outside_a_task_all_is_refused)
{
	int fds[2];

	socket_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	ck_assert_int_eq(weft_stream_put(&stream, "x", 1), -EPERM);
	ck_assert_int_eq(weft_stream_put(&stream, "", 0), -EPERM);
	ck_assert_int_eq(weft_stream_flush(&stream), -EPERM);
	ck_assert_int_eq(close(fds[0]), 0);
	ck_assert_int_eq(close(fds[1]), 0);
}
END_TEST

/* ---- Many ---------------------------------------------------------------- */

enum { FULL_ONES = 200 };

/* In one run the task fills each stream's buffer, and starts to send it. */
static void fill_many(struct way *ways)
{
	static const unsigned char bytes[WEFT__SEND_BUFFER_BYTES + 1];
	struct weft__ring *ring = &weft__shard(weft__worker_self())->ring;
	uint32_t max = 0;

	for (int i = 0; i < FULL_ONES; i++) {
		struct weft_stream *stream = &ways[i].stream;

		EXPECT(weft_stream_put(stream, bytes,
				       WEFT__SEND_BUFFER_BYTES) == 0);
		EXPECT(weft_stream_put(stream, bytes, 1) == 0);
		if (weft__ring_unsubmitted(ring) > max)
			max = weft__ring_unsubmitted(ring);
	}
	EXPECT(max == WEFT__TICK_BUDGET - 1);
}

/* Another task is always ready, so all sends go through the ring. */
static void fill_many_beside(struct way *ways)
{
	weft__atomic(bool) over = false;

	WEFT_SUPERVISE (scope) {
		kit_go(scope, be_ready, &over);
		fill_many(ways);
		weft__store(&over, true, release);
	}
}

static int64_t send_many(void *arg)
{
	struct way *ways = calloc(FULL_ONES, sizeof(*ways));

	(void)arg;
	EXPECT(ways != NULL);
	for (int i = 0; i < FULL_ONES; i++) {
		int fds[2];

		socket_pair(fds);
		ways[i].peer = fds[1];
		weft_stream_init(&ways[i].stream, fds[0]);
	}
	fill_many_beside(ways);
	for (int i = 0; i < FULL_ONES; i++)
		way_end(&ways[i]);
	free(ways);
	return 0;
}

/* When a tick's worth of entries is waiting, they are submitted before its
 * end. */
START_TEST(sends_do_not_pile_up)
{
	kit_run(send_many, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/stream_put");
	TCase *when = tcase_create("when");
	TCase *much = tcase_create("how much");
	TCase *others = tcase_create("with others");
	TCase *buffers = tcase_create("buffers");
	TCase *none = tcase_create("none");
	TCase *many = tcase_create("many");

	tcase_set_timeout(much, 120);
	tcase_set_timeout(others, 120);
	stream_add_test(when, what_is_put_is_sent_when_the_reader_waits);
	stream_add_test(when, answers_leave_together);
	stream_add_test(when, answers_are_one_send);
	stream_add_test(when, flush_sends_what_was_put);
	stream_add_test(much, any_length_may_be_put);
	stream_add_test(much, buffer_that_is_full_goes_out);
	stream_add_test(much, slow_peer_holds_up_who_puts);
	stream_add_test(others, write_follows_what_its_task_has_put);
	stream_add_test(others, others_write_beside_what_is_put);
	stream_add_test(others, others_do_not_send_what_is_put);
	if (test_needs(test_has_descriptors(500), "few_buffers_are_kept",
		       "500 descriptors"))
		stream_add_test(buffers, few_buffers_are_kept);
	tcase_add_test(buffers, last_buffer_is_the_next);
	stream_add_test(none, nothing_may_be_put);
	stream_add_test(none, descriptor_that_cannot_be_written_is_told);
	tcase_add_test(none, outside_a_task_all_is_refused);
	if (test_needs(test_has_descriptors(500), "sends_do_not_pile_up",
		       "500 descriptors"))
		tcase_add_test(many, sends_do_not_pile_up);
	suite_add_tcase(suite, when);
	suite_add_tcase(suite, much);
	suite_add_tcase(suite, others);
	suite_add_tcase(suite, buffers);
	suite_add_tcase(suite, none);
	suite_add_tcase(suite, many);
	return io_tests_run(suite);
}

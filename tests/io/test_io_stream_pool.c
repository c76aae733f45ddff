/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/pool: the buffer pools of the workers.
 *
 * The streams of a worker share its buffers.  A stream that is not read takes
 * only a few of them; a stream that finds none left uses a buffer of its own;
 * and buffers return to their worker, wherever they were read.
 */
#include "tests/support/errno_now.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"

/* ---- A stream that is not read ------------------------------------------- */

/* Sends until the socket takes nothing for a while; returns the number of
 * bytes. */
static uint64_t send_until_held_up(int fd, size_t chunk_bytes)
{
	unsigned char chunk[60000];
	uint64_t at = 0;

	for (int still = 0; still < 20; still++) {
		ssize_t n;

		do {
			kit_fill(chunk, chunk_bytes, at);
			n = send(fd, chunk, chunk_bytes,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n > 0) {
				at += (uint64_t)n;
				still = 0;
			}
		} while (n > 0 && at % 4096 < chunk_bytes / 2);
		EXPECT(n > 0 || errno_now() == EAGAIN);
		EXPECT(at < 64 << 20);
		EXPECT((n > 0 ? weft_yield() : weft_sleep(WEFT_MS(1))) == 0);
	}
	return at;
}

static void hold_up(bool tcp, size_t chunk_bytes)
{
	int fds[2], others[2];
	uint64_t sent;

	kit_pair(fds, tcp);
	socket_pair(others);
	kit_make_small(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);
	struct weft_stream other = WEFT_STREAM_INIT(others[0]);

	kit_warm_up(&stream, fds[1]);
	sent = send_until_held_up(fds[1], chunk_bytes);
	ck_assert_uint_lt(sent, 1 << 20);
	/* Other streams are not held up. */
	kit_exchange(&other, others[1], 200);
	kit_take_all(&stream, 0, sent, chunk_bytes);
	/* The stream goes on after it was read. */
	kit_exchange(&stream, fds[1], 200);
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_stream_close(&other) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	EXPECT(weft_close(others[1]) == 0);
}

STREAM_TEST(sender_that_nobody_reads_is_held_up)
{
	for (int tcp = 0; tcp < 2; tcp++) {
		hold_up(tcp, 60000);
		hold_up(tcp, 1000);
	}
	return 0;
}

/* ---- No buffers left ----------------------------------------------------- */

enum { STREAMS = 3000 };

struct crowd {
	struct weft_stream streams[STREAMS];
	int peers[STREAMS];
};

static int crowd_size(void)
{
	struct rlimit limit;
	rlim_t max;

	EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	max = (limit.rlim_max - 100) / 2;
	return max < STREAMS ? (int)max : STREAMS;
}

static void crowd_open(struct crowd *crowd, int count)
{
	for (int i = 0; i < count; i++) {
		int fds[2];

		socket_pair(fds);
		weft_stream_init(&crowd->streams[i], fds[0]);
		crowd->peers[i] = fds[1];
		kit_warm_up(&crowd->streams[i], fds[1]);
	}
}

static void crowd_send(struct crowd *crowd, int count, unsigned round)
{
	for (int i = 0; i < count; i++) {
		unsigned char byte = kit_byte((unsigned)i + round);

		EXPECT(write(crowd->peers[i], &byte, 1) == 1);
		if (i % 64 == 0)
			EXPECT(weft_yield() == 0);
	}
	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
}

/* Each stream that has a buffer keeps it until all have their byte.  Returns
 * the number of streams that use a buffer of their own. */
static int crowd_receive(struct crowd *crowd, int count, unsigned round)
{
	unsigned char byte = 0;
	const void *data;
	int own = 0;

	for (int i = 0; i < count; i++) {
		struct weft__stream *stream = (void *)&crowd->streams[i];

		EXPECT(weft_stream_peek(&crowd->streams[i], &data) == 1);
		own += stream->own != NULL;
	}
	for (int i = 0; i < count; i++) {
		EXPECT(weft_stream_read(&crowd->streams[i], &byte, 1) == 1);
		EXPECT(byte == kit_byte((unsigned)i + round));
	}
	return own;
}

static void crowd_close(struct crowd *crowd, int count)
{
	for (int i = 0; i < count; i++) {
		EXPECT(weft_stream_close(&crowd->streams[i]) == 0);
		EXPECT(close(crowd->peers[i]) == 0);
	}
}

/* There are many buffers, so a stream does not take few for lack of buffers. */
static void make_many_buffers(void)
{
	struct crowd *crowd = malloc(sizeof(*crowd));
	int count = crowd_size() / 8;

	EXPECT(crowd != NULL);
	crowd_open(crowd, count);
	crowd_send(crowd, count, 0);
	(void)crowd_receive(crowd, count, 0);
	crowd_close(crowd, count);
	free(crowd);
}

static int64_t take_few(void *arg)
{
	enum { HELD = 64, BATCH = 40, SENT = 250 };
	uint32_t before, after;
	int fds[2];

	(void)arg;
	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	make_many_buffers();
	kit_warm_up(&stream, fds[1]);
	before = kit_taken(WEFT__POOL_SMALL);
	for (unsigned i = 0; i < SENT; i++) {
		unsigned char byte = kit_byte(i);

		EXPECT(weft_write_all(fds[1], &byte, 1, NULL) == 0);
		EXPECT(weft_sleep(WEFT_US(10)) == 0);
	}
	after = kit_taken(WEFT__POOL_SMALL);
	ck_assert_uint_gt(after - before, HELD / 2);
	ck_assert_uint_lt(after - before, HELD + BATCH);
	kit_take_all(&stream, 0, SENT, 1);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

/* The buffers are few, however small the chunks are. */
STREAM_TEST(stream_that_nobody_reads_takes_few_buffers)
{
	WEFT_SUPERVISE (scope)
		kit_go_pinned(scope, take_few, NULL);
	return 0;
}

static uint64_t ops(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	return stats.total.ops;
}

/* Each stream has one byte, and there are more streams than buffers of a
 * worker.  No stream asks the kernel again and again. */
static int64_t run_dry(void *arg)
{
	struct crowd *crowd = malloc(sizeof(*crowd));
	int count = crowd_size(), own = 0;

	(void)arg;
	EXPECT(crowd != NULL);
	crowd_open(crowd, count);
	for (unsigned round = 0; round < 3; round++) {
		uint64_t before = ops();

		crowd_send(crowd, count, round);
		own = crowd_receive(crowd, count, round);
		ck_assert_uint_lt(ops() - before, 5 * (uint64_t)count);
		/* Each waiting stream has a request again. */
		for (int i = 0; i < count; i++)
			EXPECT(peek_within(&crowd->streams[i], WEFT_US(1)) ==
			       -ETIMEDOUT);
	}
	if (count == STREAMS)
		ck_assert_int_gt(own, 0);
	crowd_close(crowd, count);
	free(crowd);
	return 0;
}

STREAM_TEST(streams_do_without_when_there_is_no_buffer)
{
	WEFT_SUPERVISE (scope)
		kit_go_pinned(scope, run_dry, NULL);
	return 0;
}

/* ---- Buffers that come back ---------------------------------------------- */

enum { READERS = 4 };

struct relay {
	struct weft_stream stream;
	struct weft_sem turns[READERS];
	weft__atomic(int) next;
	unsigned workers[READERS];
	uint64_t at, bytes, random;
};

/* Each reader is pinned to a worker, and takes some bytes when it is its
 * turn. */
static int64_t relay_run(void *arg)
{
	struct relay *relay = *(struct relay **)arg;
	int i = weft__add(&relay->next, 1, acq_rel);
	/* Time for the other worker to steal another reader. */
	weft_nsec by = weft_now() + WEFT_MS(20);
	bool over = false;

	relay->workers[i] = weft__worker_self()->index;
	while (weft__load(&relay->next, acquire) < 2 && weft_now() < by)
		weft__spin_hint();
	while (!over) {
		EXPECT(weft_sem_acquire(&relay->turns[i], 1) == 0);
		over = relay->at == relay->bytes;
		if (!over) {
			ssize_t n = kit_take(&relay->stream, relay->at,
					     &relay->random);

			EXPECT(n > 0);
			relay->at += (uint64_t)n;
		}
		weft_sem_release(&relay->turns[(i + 1) % READERS], 1);
	}
	return 0;
}

static bool relay_spread(const struct relay *relay)
{
	for (int i = 1; i < READERS; i++)
		if (relay->workers[i] != relay->workers[0])
			return true;
	return false;
}

/* Returns whether more than one worker took part. */
static bool relay_once(void)
{
	struct relay relay = { .bytes = 10 << 20, .random = 1 };
	struct kit_sender sender = { .bytes = relay.bytes,
				     .chunk_max = 60000 };
	struct weft__stream *stream = (void *)&relay.stream;
	int fds[2];

	tcp_pair(fds);
	sender.fd = fds[1];
	weft_stream_init(&relay.stream, fds[0]);
	for (int i = 0; i < READERS; i++)
		relay.turns[i] = (struct weft_sem)WEFT_SEM_INIT(i == 0);
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < READERS; i++)
			kit_go_pinned(scope, relay_run, &relay);
		kit_go(scope, kit_send, &sender);
	}
	/* The pool always had buffers for the stream. */
	EXPECT(stream->own == NULL);
	EXPECT(weft_stream_close(&relay.stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	return relay_spread(&relay);
}

STREAM_TEST(buffers_that_come_back_are_used_again)
{
	unsigned workers = weft_runtime_self()->workers_count;
	bool spread = workers == 1;

	for (int i = 0; i < 3 || (!spread && i < 50); i++)
		spread |= relay_once();
	ck_assert(spread);
	for (unsigned i = 0; i < workers; i++)
		ck_assert_uint_le(kit_pool(i, WEFT__POOL_LARGE)->made, 32);
	return 0;
}

/* ---- Sizes --------------------------------------------------------------- */

/* A full buffer is followed by large ones, a nearly empty one by small ones. */
STREAM_TEST(buffers_fit_what_comes)
{
	uint32_t small, large;
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	for (int round = 0; round < 2; round++) {
		struct kit_sender sender = { fds[1], 1 << 20, 100000, 1 };

		kit_exchange(&stream, fds[1], 200);
		large = kit_taken(WEFT__POOL_LARGE);
		WEFT_SUPERVISE (scope) {
			kit_go(scope, kit_send, &sender);
			kit_take_all(&stream, 0, sender.bytes, 1);
		}
		ck_assert_uint_gt(kit_taken(WEFT__POOL_LARGE), large);
		small = kit_taken(WEFT__POOL_SMALL);
		kit_exchange(&stream, fds[1], 300);
		ck_assert_uint_gt(kit_taken(WEFT__POOL_SMALL), small);
		large = kit_taken(WEFT__POOL_LARGE);
		kit_exchange(&stream, fds[1], 100);
		ck_assert_uint_eq(kit_taken(WEFT__POOL_LARGE), large);
	}
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

int main(void)
{
	Suite *suite = suite_create("io/stream_pool");
	TCase *held = tcase_create("held up");
	TCase *dry = tcase_create("dry");

	tcase_set_timeout(dry, 120);
	stream_add_test(held, sender_that_nobody_reads_is_held_up);
	if (test_needs(test_has_ring_buffers(),
		       "stream_that_nobody_reads_takes_few_buffers",
		       NEEDS_BUFFERS))
		stream_add_test(held,
				stream_that_nobody_reads_takes_few_buffers);
	stream_add_test(dry, streams_do_without_when_there_is_no_buffer);
	if (test_needs(test_has_ring_buffers(),
		       "buffers_that_come_back_are_used_again", NEEDS_BUFFERS))
		stream_add_test(dry, buffers_that_come_back_are_used_again);
	if (test_needs(test_has_ring_buffers(),
		       "buffers_fit_what_comes", NEEDS_BUFFERS))
		stream_add_test(dry, buffers_fit_what_comes);
	suite_add_tcase(suite, held);
	suite_add_tcase(suite, dry);
	return io_tests_run(suite);
}

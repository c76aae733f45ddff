/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/races: waits that end early lose no byte, and many streams at
 * a time do not mix up their bytes.
 */
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"

/* ---- Waits that end early ------------------------------------------------ */

/* Sends now and then, in pieces smaller than the reader asks for. */
static int64_t trickle(void *arg)
{
	struct kit_sender *sender = *(struct kit_sender **)arg;
	unsigned char chunk[4096];
	uint64_t at = 0;

	while (at < sender->bytes) {
		size_t count = 1 + kit_chance(&sender->random,
					      kit_chance(&sender->random, 4) ?
						      100 :
						      sizeof(chunk));

		if (count > sender->bytes - at)
			count = (size_t)(sender->bytes - at);
		kit_fill(chunk, count, at);
		EXPECT(weft_write_all(sender->fd, chunk, count, NULL) == 0);
		at += count;
		if (kit_chance(&sender->random, 2))
			EXPECT(weft_sleep(kit_chance(&sender->random,
						     WEFT_US(60))) == 0);
	}
	return 0;
}

/* Returns how many waits a deadline ended. */
static unsigned take_within(struct weft_stream *stream, uint64_t bytes,
			    uint64_t random)
{
	unsigned ended = 0;

	for (uint64_t at = 0; at < bytes;) {
		ssize_t n = 0;

		WEFT_WITHIN (1 + kit_chance(&random, WEFT_US(40)))
			n = kit_take(stream, at, &random);
		EXPECT(n > 0 || n == -ETIMEDOUT);
		if (n > 0)
			at += (uint64_t)n;
		else
			ended++;
	}
	return ended;
}

static unsigned read_with_deadlines(bool tcp, bool nonblocking)
{
	uint64_t bytes = kit_rounds(8) * 200000;
	unsigned ended = 0;
	int fds[2];

	kit_pair(fds, tcp);
	if (nonblocking)
		EXPECT(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);
	struct kit_sender sender = { fds[1], bytes, 0, 1 };

	WEFT_SUPERVISE (scope) {
		kit_go(scope, trickle, &sender);
		ended = take_within(&stream, bytes, 2);
	}
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	return ended;
}

/* Where the reader comes late, few of its waits have to be ended. */
static void expect_timeouts_lose_nothing(bool tcp, bool nonblocking)
{
	for (unsigned ended = 0; ended <= 100;)
		ended += read_with_deadlines(tcp, nonblocking);
}

STREAM_TEST(wait_that_times_out_loses_nothing)
{
	expect_timeouts_lose_nothing(false, false);
	expect_timeouts_lose_nothing(true, false);
	expect_timeouts_lose_nothing(false, true);
	return 0;
}

struct reading {
	struct weft_stream *stream;
	uint64_t at, bytes, random;
};

static int64_t read_until_cancelled(void *arg)
{
	struct reading *reading = *(struct reading **)arg;
	ssize_t n = 1;

	while (n > 0 && reading->at < reading->bytes) {
		n = kit_take(reading->stream, reading->at, &reading->random);
		if (n > 0)
			reading->at += (uint64_t)n;
	}
	EXPECT(n > 0 || n == -ECANCELED);
	return n > 0;
}

/* One task after the other continues to read, until it is cancelled. */
static int64_t read_in_turns(struct reading *reading)
{
	int64_t cancelled = 0;
	uint64_t random = 4;

	while (reading->at < reading->bytes) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		struct weft_task task;
		int64_t done = 0;

		opts.ret_task = &task;
		WEFT_SUPERVISE (scope) {
			EXPECT(weft_go_opts(scope, read_until_cancelled,
					    &reading, sizeof(reading),
					    &opts) == 0);
			EXPECT(weft_sleep(kit_chance(&random, WEFT_US(100))) ==
			       0);
			(void)weft_cancel(task);
			EXPECT(weft_join(task, &done) == 0 ||
			       reading->at < reading->bytes);
		}
		cancelled += done == 0;
	}
	return cancelled;
}

static int64_t read_with_cancellations(void)
{
	uint64_t bytes = kit_rounds(8) * 100000;
	int64_t cancelled = 0;
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);
	struct kit_sender sender = { fds[1], bytes, 0, 1 };
	struct reading reading = { &stream, 0, bytes, 3 };

	WEFT_SUPERVISE (scope) {
		kit_go(scope, trickle, &sender);
		cancelled = read_in_turns(&reading);
	}
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	ck_assert_int_eq(weft_close(fds[1]), 0);
	return cancelled;
}

STREAM_TEST(wait_that_is_cancelled_loses_nothing)
{
	for (int64_t cancelled = 0; cancelled <= 50;)
		cancelled += read_with_cancellations();
	return 0;
}

/* Reads now and then, in pieces smaller than the sender sends. */
static int64_t sip(void *arg)
{
	struct kit_sender *receiver = *(struct kit_sender **)arg;
	unsigned char bytes[10000];

	for (uint64_t at = 0; at < receiver->bytes;) {
		ssize_t n = weft_read(receiver->fd, bytes, sizeof(bytes));

		EXPECT(n > 0);
		kit_check(bytes, (size_t)n, at);
		at += (uint64_t)n;
		EXPECT(weft_sleep(kit_chance(&receiver->random,
					     WEFT_US(300))) == 0);
	}
	return 0;
}

/* Each write continues where a deadline ended the previous one.  Returns how
 * many ended after a part of their bytes. */
static unsigned write_within(struct weft_stream *stream, uint64_t bytes)
{
	static const unsigned max = 100000;
	unsigned char *chunk = malloc(max);
	uint64_t random = 1;
	unsigned ended = 0;

	EXPECT(chunk != NULL);
	for (uint64_t at = 0; at < bytes;) {
		size_t count = 1 + kit_chance(&random, max), done = 0;
		int r = 0;

		if (count > bytes - at)
			count = (size_t)(bytes - at);
		kit_fill(chunk, count, at);
		WEFT_WITHIN (1 + kit_chance(&random, WEFT_US(100)))
			r = weft_stream_write_all(stream, chunk, count, &done);
		EXPECT(r == 0 ? done == count : r == -ETIMEDOUT);
		ended += done > 0 && done < count;
		at += done;
	}
	free(chunk);
	return ended;
}

static unsigned write_with_deadlines(bool tcp, bool nonblocking)
{
	uint64_t bytes = kit_rounds(8) * 500000;
	unsigned ended = 0;
	int fds[2];

	kit_pair(fds, tcp);
	kit_make_small(fds);
	if (nonblocking)
		EXPECT(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);
	struct kit_sender receiver = { fds[1], bytes, 0, 1 };

	WEFT_SUPERVISE (scope) {
		kit_go(scope, sip, &receiver);
		ended = write_within(&stream, bytes);
	}
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	return ended;
}

STREAM_TEST(write_that_times_out_says_how_much)
{
	for (int i = 0; i < 4; i++)
		for (unsigned ended = 0; ended <= 3;)
			ended += write_with_deadlines(i & 1, i & 2);
	return 0;
}

/* The deadline has passed before the call: it fails immediately, and loses
 * nothing. */
STREAM_TEST(task_that_is_too_late_is_told_so)
{
	const void *data;
	char byte;
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	ck_assert_int_eq(weft_write_all(fds[1], "x", 1, NULL), 0);
	ck_assert_int_eq(weft_stream_peek(&stream, &data), 1);
	WEFT_WITHIN (0) {
		ck_assert_int_eq(weft_sleep(WEFT_SEC(3600)), -ETIMEDOUT);
		ck_assert_int_eq(weft_stream_peek(&stream, &data), -ETIMEDOUT);
		ck_assert_int_eq(weft_stream_read(&stream, &byte, 1),
				 -ETIMEDOUT);
		ck_assert_int_eq(weft_stream_write_all(&stream, "x", 1, NULL),
				 -ETIMEDOUT);
	}
	ck_assert_int_eq(weft_stream_read(&stream, &byte, 1), 1);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

struct early {
	struct weft_scope *scope;
	int fds[2];
};

/* The task has not waited yet, so its scope does not know of it when it is
 * cancelled. */
static int64_t cancel_and_peek(void *arg)
{
	struct early *early = *(struct early **)arg;
	struct weft_stream stream = WEFT_STREAM_INIT(early->fds[0]);
	const void *data;

	weft_scope_cancel(early->scope);
	EXPECT(weft_stream_peek(&stream, &data) == -ECANCELED);
	return weft_stream_close(&stream);
}

STREAM_TEST(first_wait_meets_a_cancelled_scope)
{
	struct early early;

	tcp_pair(early.fds);
	WEFT_SUPERVISE (scope) {
		early.scope = scope;
		kit_go(scope, cancel_and_peek, &early);
	}
	return weft_close(early.fds[1]);
}

/* ---- Both ways ----------------------------------------------------------- */

static int64_t echo(void *arg)
{
	int fd = (int)(intptr_t) * (void **)arg;
	struct weft_stream stream = WEFT_STREAM_INIT(fd);
	const void *data;
	ssize_t n;

	while ((n = weft_stream_peek(&stream, &data)) > 0) {
		EXPECT(weft_stream_write_all(&stream, data, (size_t)n, NULL) ==
		       0);
		weft_stream_skip(&stream, (size_t)n);
	}
	EXPECT(n == 0);
	return weft_stream_close(&stream);
}

struct writing {
	struct weft_stream *stream;
	uint64_t bytes;
};

static int64_t write_it_all(void *arg)
{
	struct writing *writing = *(struct writing **)arg;
	static const size_t max = 50000;
	unsigned char *chunk = malloc(max);
	uint64_t random = 1;

	EXPECT(chunk != NULL);
	for (uint64_t at = 0; at < writing->bytes;) {
		size_t count = 1 + kit_chance(&random, (unsigned)max), done;

		if (count > writing->bytes - at)
			count = (size_t)(writing->bytes - at);
		kit_fill(chunk, count, at);
		EXPECT(weft_stream_write_all(writing->stream, chunk, count,
					     &done) == 0);
		EXPECT(done == count);
		at += count;
	}
	free(chunk);
	return 0;
}

/* One task writes while another task reads. */
STREAM_TEST(stream_goes_both_ways_at_once)
{
	for (int tcp = 0; tcp < 2; tcp++) {
		uint64_t bytes = kit_rounds(8) * 500000;
		int fds[2];

		kit_pair(fds, tcp);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);
		struct writing writing = { &stream, bytes };

		WEFT_SUPERVISE (scope) {
			kit_go(scope, echo, (void *)(intptr_t)fds[1]);
			kit_go(scope, write_it_all, &writing);
			kit_take_all(&stream, 0, bytes, 7);
			EXPECT(weft_shutdown(fds[0], SHUT_WR) == 0);
		}
		EXPECT(weft_stream_close(&stream) == 0);
	}
	return 0;
}

struct talk {
	struct weft_stream *stream;
	weft__atomic(int) next;
};

enum { TALKERS = 4, TALK_BYTES = 3000 };

static int64_t talk(void *arg)
{
	struct talk *talk = *(struct talk **)arg;
	char byte = (char)weft__add(&talk->next, 1, relaxed);

	for (int i = 0; i < TALK_BYTES; i++)
		EXPECT(weft_stream_write_all(talk->stream, &byte, 1, NULL) ==
		       0);
	return 0;
}

STREAM_TEST(several_may_send_at_once)
{
	int counts[TALKERS] = { 0 }, fds[2];

	tcp_pair(fds);
	kit_make_small(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);
	struct talk talking = { .stream = &stream };

	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < TALKERS; i++)
			kit_go(scope, talk, &talking);
		for (int i = 0; i < TALKERS * TALK_BYTES; i++) {
			unsigned char byte;

			EXPECT(weft_read(fds[1], &byte, 1) == 1);
			EXPECT(byte < TALKERS);
			counts[byte]++;
		}
	}
	for (int i = 0; i < TALKERS; i++)
		ck_assert_int_eq(counts[i], TALK_BYTES);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

enum { CONNECTIONS = 200, MESSAGE_MAX = 200 };

static int64_t ask(void *arg)
{
	int fd = (int)(intptr_t) * (void **)arg;
	struct weft_stream stream = WEFT_STREAM_INIT(fd);
	uint64_t random = (uint64_t)fd, at = random << 20;

	for (unsigned i = 0; i < kit_rounds(1000); i++) {
		unsigned char message[MESSAGE_MAX];
		size_t count = 1 + kit_chance(&random, MESSAGE_MAX);

		kit_fill(message, count, at);
		EXPECT(weft_stream_write_all(&stream, message, count, NULL) ==
		       0);
		kit_take_all(&stream, at, at + count, i);
		at += count;
	}
	return weft_stream_close(&stream);
}

STREAM_TEST(many_connections_keep_to_themselves)
{
	int64_t result = -1;

	WEFT_SCOPE (scope, &result)
		for (int i = 0; i < CONNECTIONS; i++) {
			int fds[2];

			kit_pair(fds, i % 2);
			kit_go(scope, echo, (void *)(intptr_t)fds[0]);
			kit_go(scope, ask, (void *)(intptr_t)fds[1]);
		}
	ck_assert_int_eq(result, 0);
	return 0;
}

/* ---- Helping ------------------------------------------------------------- */

/* The worker whose ring serves the stream computes: a helper takes the
 * completion, and gives the buffer back. */
struct hogged {
	int fds[2];
	unsigned worker;
	weft__atomic(bool) kept, leave, reads, got;
	bool warm;
};

/* Keeps the other worker, so that the reader starts on the one that computes
 * later. */
static int64_t keep_the_other_worker(void *arg)
{
	struct hogged *hogged = *(struct hogged **)arg;

	while (weft__worker_self()->index == hogged->worker)
		EXPECT(weft_yield() == 0);
	weft__store(&hogged->kept, true, release);
	while (!weft__load(&hogged->leave, acquire))
		weft__spin_hint();
	return 0;
}

static int64_t read_beside(void *arg)
{
	struct hogged *hogged = *(struct hogged **)arg;
	struct weft_stream stream = WEFT_STREAM_INIT(hogged->fds[0]);
	char byte = 0;

	if (hogged->warm)
		kit_warm_up(&stream, hogged->fds[1]);
	EXPECT(weft__worker_self()->index == hogged->worker);
	weft__store(&hogged->reads, true, release);
	EXPECT(weft_stream_read(&stream, &byte, 1) == 1 && byte == 'h');
	weft__store(&hogged->got, true, release);
	return weft_stream_close(&stream);
}

static void yield_until(weft__atomic(bool) *said)
{
	while (!weft__load(said, acquire))
		EXPECT(weft_yield() == 0);
}

static void hog(bool warm)
{
	struct hogged hogged = {
		.worker = weft__worker_self()->index,
		.warm = warm,
	};
	weft_nsec by;

	tcp_pair(hogged.fds);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, keep_the_other_worker, &hogged);
		yield_until(&hogged.kept);
		kit_go(scope, read_beside, &hogged);
		yield_until(&hogged.reads);
		weft__store(&hogged.leave, true, release);
		EXPECT(weft_sleep(WEFT_US(200)) == 0);
		EXPECT(write(hogged.fds[1], "h", 1) == 1);
		by = weft_now() + WEFT_SEC(10);
		while (!weft__load(&hogged.got, acquire) && weft_now() < by)
			weft__spin_hint();
		EXPECT(weft__load(&hogged.got, acquire));
	}
	EXPECT(weft_close(hogged.fds[1]) == 0);
}

static int64_t hog_pinned(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++)
		hog(i % 2);
	return 0;
}

static int64_t helping_task(void *arg)
{
	(void)arg;
	if (weft_runtime_self()->monitor_off)
		return 0;
	WEFT_SUPERVISE (scope)
		kit_go_pinned(scope, hog_pinned, NULL);
	return 0;
}

START_TEST(others_receive_for_a_worker_that_computes)
{
	kit_run(helping_task, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/stream_races");
	TCase *waits = tcase_create("waits");
	TCase *ways = tcase_create("ways");
	TCase *helping = tcase_create("helping");

	tcase_set_timeout(waits, 120);
	tcase_set_timeout(ways, 120);
	tcase_set_timeout(helping, 120);
	tcase_set_tags(helping, "monitor");
	stream_add_test(waits, wait_that_times_out_loses_nothing);
	stream_add_test(waits, wait_that_is_cancelled_loses_nothing);
	stream_add_test(waits, write_that_times_out_says_how_much);
	stream_add_test(waits, task_that_is_too_late_is_told_so);
	stream_add_test(waits, first_wait_meets_a_cancelled_scope);
	stream_add_test(ways, stream_goes_both_ways_at_once);
	stream_add_test(ways, several_may_send_at_once);
	if (test_needs(test_has_descriptors(500),
		       "many_connections_keep_to_themselves",
		       "500 descriptors"))
		stream_add_test(ways, many_connections_keep_to_themselves);
	tcase_add_test(helping, others_receive_for_a_worker_that_computes);
	suite_add_tcase(suite, waits);
	suite_add_tcase(suite, ways);
	suite_add_tcase(suite, helping);
	return io_tests_run(suite);
}

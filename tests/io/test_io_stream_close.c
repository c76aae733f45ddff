/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/close: a stream can be closed in any state, and leaves
 * nothing behind; the end of a connection is told from its loss, which a write
 * has met.
 *
 * The states: new, with a request in the kernel, idle after use, with unread
 * bytes, at its end, and while it receives.
 */
#include <sys/syscall.h>

#include "io/os/syscall.h"
#include "tests/support/child_kit.h"
#include "tests/support/errno_now.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"

/* ---- In any state -------------------------------------------------------- */

/* The state of the stream when it is closed. */
enum state { NEW, ARMED, USED, UNREAD, PARTLY_READ, ENDED, STATES };

static void bring_to(enum state state, struct weft_stream *stream,
		     const int fds[2])
{
	unsigned char bytes[10000];
	const void *data;

	if (state >= USED)
		kit_warm_up(stream, fds[1]);
	if (state == ARMED)
		EXPECT(peek_within(stream, WEFT_US(1)) == -ETIMEDOUT);
	if (state == UNREAD || state == PARTLY_READ) {
		kit_fill(bytes, sizeof(bytes), 0);
		EXPECT(weft_write_all(fds[1], bytes, sizeof(bytes), NULL) == 0);
	}
	if (state == PARTLY_READ) {
		EXPECT(weft_stream_peek(stream, &data) > 1);
		weft_stream_skip(stream, 1);
	}
	if (state == ENDED) {
		EXPECT(weft_shutdown(fds[1], SHUT_WR) == 0);
		EXPECT(weft_stream_peek(stream, &data) == 0);
	}
}

/* The peer sees the end immediately: no other reference keeps the socket
 * open. */
static void expect_closed(enum state state, const int fds[2])
{
	struct pollfd end = { .fd = fds[1], .events = POLLIN };
	char byte;
	ssize_t n;

	EXPECT(fcntl(fds[0], F_GETFD) < 0);
	EXPECT(poll(&end, 1, 10000) == 1);
	n = recv(fds[1], &byte, 1, MSG_DONTWAIT);
	/* The reset shows that bytes of the peer were not read. */
	if (n < 0)
		EXPECT(errno_now() == ECONNRESET && state >= UNREAD);
	else
		EXPECT(n == 0);
}

static void close_in(enum state state, bool tcp)
{
	int fds[2];

	kit_pair(fds, tcp);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	bring_to(state, &stream, fds);
	EXPECT(weft_stream_close(&stream) == 0);
	expect_closed(state, fds);
	EXPECT(weft_close(fds[1]) == 0);
}

STREAM_TEST(stream_is_closed_whatever_it_is_at)
{
	for (unsigned i = 0; i < kit_rounds(50); i++)
		for (int state = 0; state < STATES; state++)
			close_in((enum state)state, i % 8 == 0);
	return 0;
}

static int64_t count_one(void *arg)
{
	/* relaxed: a counter. */
	weft__add(*(weft__atomic(unsigned) **)arg, 1u, relaxed);
	return 0;
}

/* Under ThreadSanitizer, the close takes another path. */
#ifndef WEFT__TSAN

/* relaxed: this worker's own. */
static uint64_t runs_here(void)
{
	return weft__load(&weft__worker_self()->counts[WEFT__N_POLLS], relaxed);
}

/* No other task runs on the worker during the close.  If the worker is held up,
 * another one may take the task that waits. */
static int64_t close_first(void *arg)
{
	uint64_t runs;
	weft__atomic(unsigned) others = 0;
	int fds[2];

	(void)arg;
	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	kit_warm_up(&stream, fds[1]);
	EXPECT(weft_shutdown(fds[1], SHUT_WR) == 0);
	EXPECT(weft_stream_read(&stream, &(char){ 0 }, 1) == 0);
	WEFT_SUPERVISE (scope) {
		kit_go_pinned(scope, count_one, &others);
		runs = runs_here();
		EXPECT(weft_stream_close(&stream) == 0);
		EXPECT(runs_here() == runs);
	}
	/* relaxed: the scope has ended. */
	EXPECT(weft__load(&others, relaxed) == 1);
	EXPECT(weft_close(fds[1]) == 0);
	return 0;
}

STREAM_TEST(stream_at_its_end_is_closed_without_a_wait)
{
	if (!test_needs(test_is_unmasked(WEFT__FEATURE_MULTISHOT_RECV),
			"stream_at_its_end_is_closed_without_a_wait",
			NEEDS_MULTISHOT))
		return 0;
	WEFT_SUPERVISE (scope)
		kit_go_pinned(scope, close_first, NULL);
	return 0;
}

#endif

enum { ENDED_ONES = 64 };

/* Each close uses up a part of what one run of the task may do. */
static int64_t close_many(void *arg)
{
	struct weft_stream *streams = calloc(ENDED_ONES, sizeof(*streams));
	weft__atomic(unsigned) others = 0;
	int fds[2], peers[ENDED_ONES];

	(void)arg;
	EXPECT(streams != NULL);
	for (int i = 0; i < ENDED_ONES; i++) {
		tcp_pair(fds);
		peers[i] = fds[1];
		weft_stream_init(&streams[i], fds[0]);
		kit_warm_up(&streams[i], peers[i]);
		EXPECT(weft_shutdown(peers[i], SHUT_WR) == 0);
		EXPECT(weft_stream_read(&streams[i], &(char){ 0 }, 1) == 0);
	}
	WEFT_SUPERVISE (scope) {
		kit_go_pinned(scope, count_one, &others);
		for (int i = 0; i < ENDED_ONES; i++)
			EXPECT(weft_stream_close(&streams[i]) == 0);
		/* With more workers another one may be about to run it.
		 * relaxed: a look. */
		EXPECT(weft__load(&others, relaxed) == 1 ||
		       weft__worker_self()->runtime->workers_count > 1);
	}
	for (int i = 0; i < ENDED_ONES; i++)
		EXPECT(weft_close(peers[i]) == 0);
	free(streams);
	return 0;
}

STREAM_TEST(who_closes_many_gives_way)
{
	WEFT_SUPERVISE (scope)
		kit_go_pinned(scope, close_many, NULL);
	return 0;
}

static int64_t close_cancelled(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_SEC(3600)) == -ECANCELED);
	for (int state = 0; state < STATES; state++) {
		int fds[2];

		WEFT_SHIELD
			tcp_pair(fds);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		WEFT_SHIELD
			bring_to((enum state)state, &stream, fds);
		EXPECT(weft_stream_close(&stream) == 0);
		expect_closed((enum state)state, fds);
		EXPECT(close(fds[1]) == 0);
	}
	return 0;
}

STREAM_TEST(cancelled_task_closes_in_full)
{
	for (unsigned i = 0; i < kit_rounds(50); i++)
		WEFT_SUPERVISE (scope) {
			kit_go(scope, close_cancelled, NULL);
			EXPECT(weft_yield() == 0);
			weft_scope_cancel(scope);
		}
	return 0;
}

/* The next connection gets the number, and no byte of the previous one. */
STREAM_TEST(number_is_used_again_at_once)
{
	unsigned again = 0;
	int old = -1;

	for (unsigned i = 0; i < 500; i++) {
		unsigned char bytes[5000];
		int fds[2];

		tcp_pair(fds);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		again += fds[0] == old;
		old = fds[0];
		kit_fill(bytes, sizeof(bytes), i * 1000);
		EXPECT(weft_write_all(fds[1], bytes, sizeof(bytes), NULL) == 0);
		kit_take_all(&stream, i * 1000, i * 1000 + 1 + i * 9, i);
		EXPECT(weft_stream_close(&stream) == 0);
		EXPECT(weft_close(fds[1]) == 0);
	}
	ck_assert_uint_gt(again, 100);
	return 0;
}

/* ---- Closing while it receives ------------------------------------------- */

struct flood {
	weft__atomic(bool) over;
	int fd;
};

static int64_t flood(void *arg)
{
	struct flood *flood = *(struct flood **)arg;
	unsigned char bytes[4000];

	kit_fill(bytes, sizeof(bytes), 0);
	while (!weft__load(&flood->over, acquire))
		if (weft_write_all(flood->fd, bytes,
				   1 + (size_t)flood->fd * 37 % sizeof(bytes),
				   NULL) < 0)
			break;
	return 0;
}

/* Leaves the stream waiting for more, or being completed at this moment,
 * perhaps by another worker. */
static void take_a_little(struct weft_stream *stream, uint64_t *random)
{
	const void *data;

	for (unsigned n = kit_chance(random, 6); n > 0; n--) {
		ssize_t shown = weft_stream_peek(stream, &data);

		EXPECT(shown > 0);
		weft_stream_skip(stream, (size_t)shown);
	}
	(void)peek_within(stream, 1 + kit_chance(random, WEFT_US(20)));
	for (unsigned n = kit_chance(random, 4); n > 0; n--)
		EXPECT(weft_yield() == 0);
}

static int64_t close_under_flood(void *arg)
{
	uint64_t random = (uint64_t)(uintptr_t) * (void **)arg;

	for (unsigned i = 0; i < kit_rounds(1000); i++) {
		struct flood flooding = { .over = false };
		int fds[2];

		tcp_pair(fds);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		flooding.fd = fds[1];
		WEFT_SUPERVISE (scope) {
			kit_go(scope, flood, &flooding);
			take_a_little(&stream, &random);
			EXPECT(weft_stream_close(&stream) == 0);
			weft__store(&flooding.over, true, release);
		}
		EXPECT(weft_close(fds[1]) == 0);
	}
	return 0;
}

/* Buffers that arrive during the close are given back, too. */
STREAM_TEST(close_gives_back_what_comes_meanwhile)
{
	WEFT_SUPERVISE (scope)
		for (uintptr_t i = 1; i <= 4; i++)
			kit_go(scope, close_under_flood, (void *)i);
	return 0;
}

/* ---- Losses ------------------------------------------------------------- */

static const struct failure {
	unsigned error;
	int end; /* what a read gives then, where the kernel gives an end */
} failures[] = {
	{ ECONNRESET, -ECONNRESET },   { ECONNABORTED, -ECONNRESET },
	{ ETIMEDOUT, -ECONNRESET },    { EHOSTUNREACH, -ECONNRESET },
	{ ENETUNREACH, -ECONNRESET },  { EPIPE, 0 },
	{ ENOBUFS, 0 },		       { ENOMEM, 0 },
};

/* It is sent without a request in the ring, which no filter sees. */
enum { LONG_BYTES = 64 << 10 };

static int64_t write_and_read(void *arg)
{
	const struct failure *failure = arg;
	static char text[LONG_BYTES];
	const void *data;
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	NEED(weft_stream_write_all(&stream, text, sizeof(text), NULL) ==
	     -(int)failure->error);
	NEED(weft_close(fds[1]) == 0);
	NEED(weft_stream_peek(&stream, &data) == failure->end);
	NEED(weft_stream_peek(&stream, &data) == failure->end);
	NEED(weft_stream_close(&stream) == 0);
	return 0;
}

/* The kernel gives the reason to the write, and an end to the reads. */
START_TEST(loss_that_a_write_has_met_is_no_end)
{
	static const unsigned sends[] = { SYS_sendto };
	struct failure failure = failures[_i];

	child_run_refused(sends, 1, failure.error, write_and_read, &failure);
}
END_TEST

/* More than the sockets hold. */
static int write_much(struct weft_stream *stream)
{
	const size_t bytes = (size_t)16 << 20;
	char *text = calloc(1, bytes);
	int r;

	EXPECT(text);
	r = weft_stream_write_all(stream, text, bytes, NULL);
	free(text);
	return r;
}

/* -EPIPE: a send has met the reset after a part. */
static int64_t write_until_reset(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;
	int r = write_much(stream);

	EXPECT(r == -ECONNRESET || r == -EPIPE);
	return 0;
}

/* Until nothing more goes out. */
static void wait_until_full(int fd)
{
	wait_until(!weft__syscall_poll(fd, POLLOUT));
}

/* The peer reads a part, until there is room and it is used, or nothing. */
static void reset_a_write(bool after_a_part)
{
	static char part[64 << 10];
	const void *data;
	int fds[2];

	tcp_pair(fds);
	kit_make_small(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	WEFT_SUPERVISE (scope) {
		kit_go(scope, write_until_reset, &stream);
		wait_until_full(fds[0]);
		for (int i = 0; after_a_part && i < 8; i++) {
			EXPECT(weft_read_all(fds[1], part, sizeof(part),
					     NULL) == 0);
			wait_until_full(fds[0]);
		}
		reset_when_closed(fds[1]);
		EXPECT(weft_close(fds[1]) == 0);
	}
	EXPECT(weft_stream_peek(&stream, &data) == -ECONNRESET);
	EXPECT(weft_stream_close(&stream) == 0);
}

STREAM_TEST(reset_while_a_write_waits_is_no_end)
{
	reset_a_write(false);
	return 0;
}

/* The send returns the part, and keeps the reason. */
STREAM_TEST(reset_after_a_part_of_a_write_is_no_end)
{
	reset_a_write(true);
	return 0;
}

/* A deadline has the error of a connection that timed out, and is none. */
STREAM_TEST(deadline_of_a_write_is_no_loss)
{
	int64_t r = 0;
	const void *data;
	int fds[2];

	tcp_pair(fds);
	kit_make_small(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	WEFT_WITHIN (WEFT_MS(20))
		r = write_much(&stream);
	EXPECT(r == -ETIMEDOUT);
	EXPECT(weft_shutdown(fds[1], SHUT_WR) == 0);
	EXPECT(weft_stream_peek(&stream, &data) == 0);
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/stream_close");
	TCase *losses = tcase_create("losses");
	TCase *closing = tcase_create("closing");

	tcase_set_timeout(closing, 120);
	stream_add_test(closing, stream_is_closed_whatever_it_is_at);
#ifndef WEFT__TSAN
	stream_add_test(closing, stream_at_its_end_is_closed_without_a_wait);
#endif
	stream_add_test(closing, who_closes_many_gives_way);
	stream_add_test(closing, cancelled_task_closes_in_full);
	stream_add_test(closing, number_is_used_again_at_once);
	stream_add_test(closing, close_gives_back_what_comes_meanwhile);
	suite_add_tcase(suite, closing);
	tcase_set_timeout(losses, 60);
	if (test_needs(test_can(child_may_refuse),
		       "loss_that_a_write_has_met_is_no_end",
		       NEEDS_REFUSED_CALLS))
		tcase_add_loop_test(losses, loss_that_a_write_has_met_is_no_end,
				    0, sizeof(failures) / sizeof(failures[0]));
	stream_add_test(losses, reset_while_a_write_waits_is_no_end);
	stream_add_test(losses, reset_after_a_part_of_a_write_is_no_end);
	stream_add_test(losses, deadline_of_a_write_is_no_loss);
	suite_add_tcase(suite, losses);
	return io_tests_run(suite);
}

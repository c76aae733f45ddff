/* SPDX-License-Identifier: MIT */
/*
 * Suite tls/interrupt: calls that a deadline or a cancellation ends, and what
 * is sent and received after them.
 */
#include "io/request/send_buffer.h"
#include "tests/support/errno_now.h"
#include "tests/support/interrupt_kit.h"
#include "tests/support/slow_reader.h"
#include "tests/tls/tls_kit.h"
#include "tls/connection.h"

/* ---- Handshakes ---------------------------------------------------------- */

/* The peer says nothing, or only a part. */
static void expect_silence(int fd, bool serves,
			   const struct weft_tls_opts *opts)
{
	struct weft_tls_context *context = context_new(opts);
	struct weft_stream below;
	struct weft_tls tls;
	int r = 0;

	weft_stream_init(&below, fd);
	WEFT_WITHIN (WEFT_MS(2))
		r = serves ? weft_tls_server(&tls, context, &below) :
			     weft_tls_client(&tls, context, &below, HOST);
	EXPECT(r == -ETIMEDOUT);
	expect_no_notes();
	EXPECT(weft_stream_close(&below) == 0);
	weft_tls_context_free(context);
}

IO_TEST(deadline_ends_a_handshake)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);
	int fds[2];

	tcp_pair(fds);
	EXPECT(weft_write_all(fds[1], "\x16\x03\x01\x02", 4, NULL) == 0);
	expect_silence(fds[0], true, &server);
	EXPECT(weft_close(fds[1]) == 0);
	tcp_pair(fds);
	expect_silence(fds[0], false, &client);
	return weft_close(fds[1]);
}

IO_TEST(cancellation_ends_a_handshake)
{
	struct ends ends = { .fds = { 0 } };

	give_contexts(&ends, 0);
	tcp_pair(ends.fds);
	weft_stream_init(&ends.end[1].below, ends.fds[1]);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, handshake_as_server, &ends.end[1]);
		EXPECT(weft_write_all(ends.fds[0], "\x16", 1, NULL) == 0);
		wait_until(kit_unreceived(ends.fds[1]) == 0);
		weft_scope_cancel(scope);
	}
	EXPECT(ends.end[1].r == -ECANCELED);
	EXPECT(weft_close(ends.fds[0]) == 0);
	/* The client's has been sent. */
	tcp_pair(ends.fds);
	weft_stream_init(&ends.end[0].below, ends.fds[0]);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, handshake_as_client, &ends.end[0]);
		wait_until(kit_unreceived(ends.fds[1]) > 0);
		weft_scope_cancel(scope);
	}
	EXPECT(ends.end[0].r == -ECANCELED);
	EXPECT(weft_close(ends.fds[1]) == 0);
	free_contexts(&ends);
	return 0;
}

IO_TEST(peer_that_goes_away_ends_a_handshake)
{
	struct ends ends = { .fds = { 0 } };

	give_contexts(&ends, 0);
	tcp_pair(ends.fds);
	weft_stream_init(&ends.end[1].below, ends.fds[1]);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, handshake_as_server, &ends.end[1]);
		EXPECT(weft_close(ends.fds[0]) == 0);
	}
	EXPECT(ends.end[1].r == -ECONNRESET);
	EXPECT(weft_tls_error(&ends.end[1].tls)[0]);
	free_contexts(&ends);
	return 0;
}

/* A thread has no streams. */
START_TEST(handshake_needs_a_task)
{
	struct weft_tls_opts opts = opts_with(NULL, &authority);
	struct weft_tls_context *context = context_new(&opts);
	struct weft_stream below;
	struct weft_tls tls;
	int fds[2];

	socket_pair(fds);
	weft_stream_init(&below, fds[0]);
	EXPECT(weft_tls_client(&tls, context, &below, HOST) == -EPERM);
	EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
	weft_tls_context_free(context);
}
END_TEST

/* ---- Bytes --------------------------------------------------------------- */

IO_TEST(interrupted_read_loses_nothing)
{
	struct ends ends;
	const void *data;
	ssize_t n = 0;
	uint64_t at = 0;

	join_ends(&ends, 0);
	for (int i = 0; i < 200; i++) {
		unsigned char bytes[300];
		size_t some = 1 + (size_t)i;

		n = peek_within(stream_of(&ends, 1), WEFT_US(i % 3 ? 1 : 50));
		EXPECT(n == -ETIMEDOUT);
		kit_fill(bytes, some, at);
		EXPECT(weft_stream_write_all(stream_of(&ends, 0), bytes, some,
					     NULL) == 0);
		for (size_t got = 0; got < some; got += (size_t)n) {
			n = weft_stream_peek(stream_of(&ends, 1), &data);
			EXPECT(n > 0);
			kit_check(data, (size_t)n, at + got);
			weft_stream_skip(stream_of(&ends, 1), (size_t)n);
		}
		at += some;
	}
	part(&ends);
	return 0;
}

/* Writes until a deadline ends that, again and again, while the peer reads
 * slowly.  Returns the bytes that are done. */
static uint64_t write_hastily(struct weft_stream *stream, unsigned rounds)
{
	enum { PIECE = 50000 };
	unsigned char *bytes = malloc(PIECE);
	uint64_t at = 0;
	int r = 0;

	EXPECT(bytes);
	for (unsigned i = 0; i < rounds; i++) {
		size_t done = 0;

		kit_fill(bytes, PIECE, at);
		WEFT_WITHIN (WEFT_US(300))
			r = weft_stream_write_all(stream, bytes,
						  i % 2 ? PIECE : 3000, &done);
		EXPECT(r == 0 || r == -ETIMEDOUT);
		at += done;
	}
	free(bytes);
	return at;
}

IO_TEST(interrupted_write_loses_nothing)
{
	struct slow_reader reader;
	struct ends ends;
	uint64_t done;

	join_ends(&ends, 0);
	kit_make_small(ends.fds);
	reader = (struct slow_reader){ .stream = stream_of(&ends, 1) };
	done = write_hastily(stream_of(&ends, 0), 20);
	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, read_slowly, &reader);
		EXPECT(weft_stream_write_all(stream_of(&ends, 0), "", 0,
					     NULL) == 0);
		EXPECT(weft_stream_close(stream_of(&ends, 0)) == 0);
	}
	EXPECT(read_by(&reader) == done && done > 0);
	EXPECT(weft_stream_close(stream_of(&ends, 1)) == 0);
	free_contexts(&ends);
	return 0;
}

/* The same where nobody has received the ticket. */
START_TEST(close_does_not_reset_for_a_ticket)
{
	ck_assert_int_eq(setenv("WEFT_MASK", "buf_ring", 1), 0);
	io_run(interrupted_write_loses_nothing_task, NULL, 1);
}
END_TEST

/* A task that waits for an answer sends what its interrupted write left. */
IO_TEST(reader_sends_what_a_write_left)
{
	unsigned char *bytes = malloc(2000000);
	struct slow_reader reader;
	struct ends ends;
	weft_nsec by;
	size_t done = 0;
	int r = 0;

	EXPECT(bytes);
	join_ends(&ends, 0);
	kit_make_small(ends.fds);
	kit_fill(bytes, 2000000, 0);
	WEFT_WITHIN (WEFT_MS(20))
		r = weft_stream_write_all(stream_of(&ends, 0), bytes, 2000000,
					  &done);
	EXPECT(r == -ETIMEDOUT && done < 2000000);
	reader = (struct slow_reader){ .stream = stream_of(&ends, 1) };
	/* Nothing comes, and the peer takes nothing. */
	ck_assert_int_eq(peek_within(stream_of(&ends, 0), WEFT_MS(30)),
			 -ETIMEDOUT);
	/* The answer comes first, while it still takes nothing. */
	EXPECT(weft_stream_write_all(stream_of(&ends, 1), "early", 5, NULL) ==
	       0);
	EXPECT(weft_stream_read_all(stream_of(&ends, 0), bytes, 5, NULL) == 0);
	EXPECT(memcmp(bytes, "early", 5) == 0);
	by = weft_now() + WEFT_SEC(20);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, read_slowly, &reader);
		EXPECT(peek_within(stream_of(&ends, 0), WEFT_MS(1)) ==
		       -ETIMEDOUT);
		while (read_by(&reader) < done) {
			EXPECT(weft_now() < by);
			EXPECT(peek_within(stream_of(&ends, 0), WEFT_MS(1)) ==
			       -ETIMEDOUT);
		}
		EXPECT(weft_tls_shutdown(&ends.end[0].tls) == 0);
	}
	EXPECT(read_by(&reader) == done);
	part(&ends);
	free(bytes);
	return 0;
}

static weft__atomic(bool) ready;

static int64_t wait_and_close(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;
	const void *data;

	weft__store(&ready, true, release);
	EXPECT(weft_stream_peek(stream, &data) == -ECANCELED);
	EXPECT(weft_stream_peek(stream, &data) == -ECANCELED);
	EXPECT(weft_stream_write_all(stream, "x", 1, NULL) == -ECANCELED);
	EXPECT(weft_stream_close(stream) == 0);
	return 0;
}

/* The peer does not take it for an attack. */
IO_TEST(cancelled_task_says_good_bye)
{
	struct ends ends;
	const void *data;

	/* relaxed: no task yet. */
	weft__store(&ready, false, relaxed);
	join_ends(&ends, 0);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, wait_and_close, stream_of(&ends, 0));
		wait_until(weft__load(&ready, acquire));
		weft_scope_cancel(scope);
	}
	EXPECT(weft_stream_peek(stream_of(&ends, 1), &data) == 0);
	EXPECT(weft_stream_close(stream_of(&ends, 1)) == 0);
	free_contexts(&ends);
	return 0;
}

static int64_t write_for_ever(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;
	static char bytes[100000];
	int r = 0;

	while (r == 0)
		r = weft_stream_write_all(stream, bytes, sizeof(bytes), NULL);
	EXPECT(r == -ECANCELED);
	return 0;
}

/* Two writers: the second waits for the first, and is cancelled as well. */
IO_TEST(cancelled_writers_end)
{
	struct ends ends;

	join_ends(&ends, 0);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, write_for_ever, stream_of(&ends, 0));
		kit_go(scope, write_for_ever, stream_of(&ends, 0));
		EXPECT(weft_sleep(WEFT_MS(5)) == 0);
		weft_scope_cancel(scope);
	}
	WEFT_WITHIN (WEFT_MS(1))
		(void)weft_stream_close(stream_of(&ends, 0));
	(void)weft_stream_close(stream_of(&ends, 1));
	free_contexts(&ends);
	return 0;
}

/* ---- A full connection --------------------------------------------------- */

static int64_t renew_in_vain(void *arg)
{
	return weft_tls_update_keys(*(struct weft_tls **)arg);
}

static int64_t shut_in_vain(void *arg)
{
	return weft_tls_shutdown(*(struct weft_tls **)arg);
}

static ssize_t take(void *arg, void *buf, size_t bytes)
{
	return weft_read(*(int *)arg, buf, bytes);
}

static int give(void *arg, const void *buf, size_t bytes, size_t *ret_done)
{
	return weft_write_all(*(int *)arg, buf, bytes, ret_done);
}

static int hang_up(void *arg)
{
	return weft_close(*(int *)arg);
}

/* Over Unix sockets, so that no kernel moves bytes on by itself.  The second
 * end receives only what it reads: a stream of a descriptor receives ahead, and
 * the first end would have room again.  The first end has a stream of its
 * descriptor, or over `first`. */
static void join_local_ends(struct ends *ends,
			    const struct weft_stream_ops *first)
{
	static const struct weft_stream_ops ops = {
		.read = take,
		.write_all = give,
		.close = hang_up,
	};

	memset(ends, 0, sizeof(*ends));
	give_contexts(ends, 0);
	socket_pair(ends->fds);
	if (first)
		weft_stream_init_over(&ends->end[0].below, first,
				      &ends->fds[0]);
	else
		weft_stream_init(&ends->end[0].below, ends->fds[0]);
	weft_stream_init_over(&ends->end[1].below, &ops, &ends->fds[1]);
	shake_hands(ends);
	EXPECT(ends->end[0].r == 0 && ends->end[1].r == 0);
}

static void fill(int fd)
{
	while (send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		;
	EXPECT(errno_now() == EAGAIN);
}

/* The first end has no room for a byte more, and owes a record. */
static void make_full(struct ends *ends)
{
	size_t done = 0;
	int r = 0;

	fill(ends->fds[0]);
	/* A deadline may pass before a record is made. */
	while (done == 0) {
		WEFT_WITHIN (WEFT_MS(1))
			r = weft_stream_write_all(stream_of(ends, 0), "owed",
						  4, &done);
		EXPECT(r == -ETIMEDOUT);
	}
}

/* The peer takes nothing, and there is no room for a record. */
IO_TEST(deadline_or_cancellation_ends_calls_on_a_full_connection)
{
	struct ends ends;
	int r = 0;

	join_local_ends(&ends, NULL);
	make_full(&ends);
	expect_interrupted(renew_in_vain, &ends.end[0].tls);
	expect_interrupted(shut_in_vain, &ends.end[0].tls);
	WEFT_WITHIN (WEFT_MS(1))
		r = weft_stream_close(stream_of(&ends, 0));
	EXPECT(r == -ETIMEDOUT);
	(void)weft_stream_close(stream_of(&ends, 1));
	free_contexts(&ends);
	return 0;
}

static void expect_closed(bool owes, bool puts, weft_nsec within_ns,
			  int expected)
{
	struct ends ends;
	int r = -1;

	join_local_ends(&ends, NULL);
	if (owes)
		make_full(&ends);
	fill(ends.fds[0]);
	if (puts)
		EXPECT(weft_stream_put(stream_of(&ends, 0), "put", 3) == 0);
	WEFT_WITHIN (within_ns)
		WEFT_WITHIN (WEFT_SEC(100))
			r = weft_stream_close(stream_of(&ends, 0));
	ck_assert_int_eq(r, expected);
	(void)weft_stream_close(stream_of(&ends, 1));
	free_contexts(&ends);
}

/* Nor does a close wait for ever.  It is well if only close_notify is left. */
IO_TEST(close_leaves_a_peer_that_reads_nothing)
{
	weft_nsec before = weft__tls_close_ns;

	weft__tls_close_ns = WEFT_MS(1);
	expect_closed(true, false, WEFT_NEVER, -ETIMEDOUT);
	expect_closed(false, false, WEFT_NEVER, 0);
	/* Data that was put is waited for without this limit. */
	expect_closed(false, true, WEFT_MS(30), -ECANCELED);
	weft__tls_close_ns = WEFT_SEC(100);
	expect_closed(true, false, WEFT_MS(1), -ECANCELED);
	expect_closed(false, false, WEFT_MS(1), 0);
	weft__tls_close_ns = before;
	return 0;
}

/* A TCP connection that the kernel gives up: the next read, or the next write,
 * returns why, once. */
static bool about_to_be_lost, is_lost, write_is_told;

static ssize_t take_or_lose(void *arg, void *buf, size_t bytes)
{
	if (!about_to_be_lost)
		return take(arg, buf, bytes);
	if (is_lost || write_is_told)
		return 0;
	is_lost = true;
	return -ETIMEDOUT;
}

static int give_or_fail(void *arg, const void *buf, size_t bytes,
			size_t *ret_done)
{
	if (is_lost)
		return -EPIPE;
	if (!about_to_be_lost || !write_is_told)
		return give(arg, buf, bytes, ret_done);
	is_lost = true;
	*ret_done = 0;
	return -ETIMEDOUT;
}

/* While the reader waits for room, too. */
static ssize_t read_of_a_lost_connection(void)
{
	static const struct weft_stream_ops ops = {
		.read = take_or_lose,
		.write_all = give_or_fail,
		.close = hang_up,
	};
	struct ends ends;
	const void *data;
	ssize_t n = 0;

	about_to_be_lost = is_lost = false;
	join_local_ends(&ends, &ops);
	make_full(&ends);
	about_to_be_lost = true;
	WEFT_WITHIN (WEFT_SEC(20)) {
		n = weft_stream_peek(stream_of(&ends, 0), &data);
		EXPECT(!weft_deadline_passed());
	}
	part(&ends);
	return n;
}

/* A reader that is held up for the rest of its turn sees an end without a
 * reason. */
IO_TEST(loss_of_the_connection_is_no_deadline)
{
	enum { TRIES = 20 };
	ssize_t n;

	for (int i = 0; i < 2; i++) {
		write_is_told = i == 1;
		n = 0;
		for (int tries = 0; tries < TRIES && n != -ETIMEDOUT; tries++)
			n = read_of_a_lost_connection();
		ck_assert_int_eq(n, -ETIMEDOUT);
	}
	return 0;
}

static weft__atomic(bool) has_no_buffers;

static void *memory_new(size_t bytes, size_t align, void *arg)
{
	(void)arg;
	/* relaxed: for the task that has stored it. */
	if (bytes == sizeof(struct weft__send_buffer) &&
	    weft__load(&has_no_buffers, relaxed))
		return NULL;
	return aligned_alloc(align, (bytes + align - 1) & -align);
}

static void memory_free(void *memory, size_t bytes, size_t align, void *arg)
{
	(void)bytes, (void)align, (void)arg;
	free(memory);
}

/* The stream below takes close_notify, but has no buffer for it. */
static int64_t close_full_without_memory(void *arg)
{
	struct ends ends;

	(void)arg;
	join_local_ends(&ends, NULL);
	fill(ends.fds[0]);
	/* relaxed: for this task. */
	weft__store(&has_no_buffers, true, relaxed);
	WEFT_WITHIN (WEFT_MS(1))
		(void)weft_stream_close(stream_of(&ends, 0));
	weft__store(&has_no_buffers, false, relaxed);
	(void)weft_stream_close(stream_of(&ends, 1));
	free_contexts(&ends);
	return 0;
}

START_TEST(deadline_ends_a_close_without_memory)
{
	struct weft_allocator allocator = { .alloc = memory_new,
					    .dealloc = memory_free };
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	opts.allocator = &allocator;
	ck_assert_int_eq(io_run_opts(close_full_without_memory, NULL, &opts),
			 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tls/interrupt");
	TCase *handshakes = tcase_create("handshakes");
	TCase *bytes = tcase_create("bytes");

	tcase_set_timeout(handshakes, 60);
	tcase_set_timeout(bytes, 60);
	io_add_test(handshakes, deadline_ends_a_handshake);
	io_add_test(handshakes, cancellation_ends_a_handshake);
	io_add_test(handshakes, peer_that_goes_away_ends_a_handshake);
	tcase_add_test(handshakes, handshake_needs_a_task);
	io_add_test(bytes, interrupted_read_loses_nothing);
	io_add_test(bytes, interrupted_write_loses_nothing);
	tcase_add_test(bytes, close_does_not_reset_for_a_ticket);
	io_add_test(bytes, reader_sends_what_a_write_left);
	io_add_test(bytes, cancelled_task_says_good_bye);
	io_add_test(bytes, cancelled_writers_end);
	io_add_test(bytes,
		    deadline_or_cancellation_ends_calls_on_a_full_connection);
	io_add_test(bytes, close_leaves_a_peer_that_reads_nothing);
	io_add_test(bytes, loss_of_the_connection_is_no_deadline);
	tcase_add_test(bytes, deadline_ends_a_close_without_memory);
	suite_add_tcase(suite, handshakes);
	suite_add_tcase(suite, bytes);
	return tls_tests_run(suite);
}

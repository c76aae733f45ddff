/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream: a stream delivers all bytes that were sent, in order and
 * exactly once; and it returns the right errors.
 */
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "io/os/syscall.h"
#include "tests/support/errno_now.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"

/* ---- Showing ------------------------------------------------------------- */

STREAM_TEST(peek_shows_the_same_until_it_is_skipped)
{
	const void *first, *again;
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	ck_assert_int_eq(weft_write_all(fds[1], "hello world", 11, NULL), 0);
	ck_assert_int_eq(weft_stream_peek(&stream, &first), 11);
	ck_assert_mem_eq(first, "hello world", 11);
	ck_assert_int_eq(weft_stream_peek(&stream, &again), 11);
	ck_assert_ptr_eq(first, again);
	weft_stream_skip(&stream, 6);
	ck_assert_int_eq(weft_stream_peek(&stream, &again), 5);
	ck_assert_ptr_eq((const char *)first + 6, again);
	weft_stream_skip(&stream, 0);
	ck_assert_int_eq(weft_stream_peek(&stream, &again), 5);
	ck_assert_mem_eq(again, "world", 5);
	weft_stream_skip(&stream, 5);
	ck_assert_int_eq(peek_within(&stream, WEFT_MS(1)), -ETIMEDOUT);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

/* Init does not depend on the previous contents of the memory. */
STREAM_TEST(init_takes_memory_as_it_is)
{
	struct weft_stream stream;
	const void *data;
	int fds[2];

	tcp_pair(fds);
	memset(&stream, 0xff, sizeof(stream));
	weft_stream_init(&stream, fds[0]);
	ck_assert_int_eq(weft_write_all(fds[1], "x", 1, NULL), 0);
	ck_assert_int_eq(weft_stream_peek(&stream, &data), 1);
	ck_assert_mem_eq(data, "x", 1);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

STREAM_TEST(read_copies_what_lies_in_several_buffers)
{
	unsigned char buf[KIT_SEVERAL + 1];
	int fds[2], whole = 0;

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	kit_warm_up(&stream, fds[1]);
	for (int i = 0; i < 20; i++) {
		ssize_t done = 0, n;

		kit_receive_several(&stream, fds, (unsigned)i);
		do {
			n = weft_stream_read(&stream, buf + done,
					     sizeof(buf) - (size_t)done);
			ck_assert_int_gt(n, 0);
			whole += n == KIT_SEVERAL;
			done += n;
		} while (done < KIT_SEVERAL);
		kit_check(buf, KIT_SEVERAL, (unsigned)i);
	}
	ck_assert_int_gt(whole, 0);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

STREAM_TEST(peek_shows_one_buffer_after_the_other)
{
	const unsigned char *data;
	int fds[2], shown = 0;

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	kit_warm_up(&stream, fds[1]);
	kit_receive_several(&stream, fds, 0);
	for (ssize_t at = 0, n; at < KIT_SEVERAL; at += n) {
		n = weft_stream_peek(&stream, (const void **)&data);
		ck_assert_int_gt(n, 0);
		kit_check(data, (size_t)n, (uint64_t)at);
		/* Skips the bytes in two parts. */
		if (n > 1)
			n /= 2;
		weft_stream_skip(&stream, (size_t)n);
		shown++;
	}
	ck_assert_int_gt(shown, 2 * KIT_SEVERAL / WEFT__POOL_SMALL_BYTES);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

STREAM_TEST(read_all_reads_what_was_asked_for)
{
	unsigned char buf[KIT_SEVERAL];
	size_t done = 0;
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	ck_assert_int_eq(weft_stream_fd(&stream), fds[0]);
	kit_fill(buf, KIT_SEVERAL, 0);
	ck_assert_int_eq(weft_write_all(fds[1], buf, KIT_SEVERAL, NULL), 0);
	ck_assert_int_eq(weft_stream_read_all(&stream, buf, 0, &done), 0);
	ck_assert_int_eq(weft_stream_read(&stream, buf, 0), 0);
	ck_assert_int_eq(weft_stream_read_all(&stream, buf, 7, &done), 0);
	ck_assert_uint_eq(done, 7);
	ck_assert_int_eq(weft_stream_read_all(&stream, buf, 5000, NULL), 0);
	kit_check(buf, 5000, 7);
	/* A deadline ends it, and the caller has the bytes up to there: none
	 * of them, where it has passed at the beginning. */
	for (size_t got = 0; got < KIT_SEVERAL - 5007; got += done) {
		WEFT_WITHIN (WEFT_MS(1))
			ck_assert_int_eq(weft_stream_read_all(&stream, buf,
							      KIT_SEVERAL,
							      &done),
					 -ETIMEDOUT);
		kit_check(buf, done, 5007 + got);
	}
	ck_assert_int_eq(weft_write_all(fds[1], "end", 3, NULL), 0);
	ck_assert_int_eq(weft_close(fds[1]), 0);
	ck_assert_int_eq(weft_stream_read_all(&stream, buf, 4, &done),
			 -ENODATA);
	ck_assert_uint_eq(done, 3);
	ck_assert_mem_eq(buf, "end", 3);
	return weft_stream_close(&stream);
}

/* ---- Order --------------------------------------------------------------- */

static void pour(bool tcp, bool nonblocking, unsigned chunk_max, uint64_t bytes)
{
	int fds[2];

	kit_pair(fds, tcp);
	if (nonblocking)
		EXPECT(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
	kit_pour_through(fds, chunk_max, bytes);
}

STREAM_TEST(bytes_come_in_their_order)
{
	uint64_t bytes = kit_rounds(8) * 500000;

	for (int tcp = 0; tcp < 2; tcp++) {
		pour(tcp, false, 100, bytes / 16);
		pour(tcp, false, 5000, bytes);
		pour(tcp, false, 200000, bytes);
	}
	return 0;
}

/* Zero bytes take no buffer. */
STREAM_TEST(nothing_takes_no_buffer)
{
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	EXPECT(weft_stream_put(&stream, NULL, 0) == 0);
	ck_assert_ptr_null(weft__stream(&stream)->out);
	EXPECT(weft_stream_close(&stream) == 0);
	return weft_close(fds[1]);
}

/* The kernel is not told that more data follows: it would hold the bytes back
 * for 200 ms. */
STREAM_TEST(write_of_nothing_sends_what_was_put)
{
	int fds[2], unsent = -1;

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	EXPECT(weft_stream_put(&stream, "put", 3) == 0);
	EXPECT(weft_stream_write_all(&stream, NULL, 0, NULL) == 0);
	EXPECT(ioctl(fds[0], SIOCOUTQNSD, &unsent) == 0);
	ck_assert_int_eq(unsent, 0);
	EXPECT(weft_stream_close(&stream) == 0);
	return weft_close(fds[1]);
}

/* On a non-blocking socket the kernel does not wait, so weft does. */
STREAM_TEST(socket_that_does_not_block_will_do)
{
	uint64_t bytes = kit_rounds(8) * 100000;

	for (int tcp = 0; tcp < 2; tcp++) {
		pour(tcp, true, 100, bytes / 8);
		pour(tcp, true, 100000, bytes);
	}
	return 0;
}

STREAM_TEST(wait_on_a_socket_that_does_not_block_can_end)
{
	char byte = 0;
	int fds[2];

	tcp_pair(fds);
	EXPECT(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	for (char c = 'a'; c < 'f'; c++) {
		ck_assert_int_eq(peek_within(&stream, WEFT_MS(1)), -ETIMEDOUT);
		ck_assert_int_eq(weft_write_all(fds[1], &c, 1, NULL), 0);
		ck_assert_int_eq(weft_stream_read(&stream, &byte, 1), 1);
		ck_assert_int_eq(byte, c);
	}
	ck_assert_int_eq(peek_within(&stream, WEFT_MS(1)), -ETIMEDOUT);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

static int64_t compute_now_and_then(void *arg)
{
	weft__atomic(bool) *over = *(weft__atomic(bool) **)arg;

	while (!weft__load(over, acquire)) {
		weft_nsec by = weft_now() + WEFT_US(50);

		while (weft_now() < by)
			weft__spin_hint();
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

/* Other tasks compute, so the reader moves from worker to worker, and gives
 * back buffers of other workers. */
STREAM_TEST(reader_may_go_from_worker_to_worker)
{
	weft__atomic(bool) over = false;

	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 4; i++)
			kit_go(scope, compute_now_and_then, &over);
		pour(false, false, 3000, kit_rounds(8) * 50000);
		pour(true, false, 70000, kit_rounds(8) * 200000);
		weft__store(&over, true, release);
	}
	return 0;
}

/* ---- Ends ---------------------------------------------------------------- */

STREAM_TEST(end_is_told_again_and_again)
{
	for (int tcp = 0; tcp < 2; tcp++) {
		const void *data;
		char byte;
		int fds[2];

		kit_pair(fds, tcp);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		ck_assert_int_eq(weft_write_all(fds[1], "ab", 2, NULL), 0);
		ck_assert_int_eq(weft_close(fds[1]), 0);
		ck_assert_int_eq(weft_stream_read(&stream, &byte, 1), 1);
		ck_assert_int_eq(byte, 'a');
		ck_assert_int_eq(weft_stream_peek(&stream, &data), 1);
		ck_assert_mem_eq(data, "b", 1);
		weft_stream_skip(&stream, 1);
		for (int i = 0; i < 3; i++) {
			ck_assert_int_eq(weft_stream_peek(&stream, &data), 0);
			ck_assert_int_eq(weft_stream_read(&stream, &byte, 1),
					 0);
		}
		ck_assert_int_eq(weft_stream_close(&stream), 0);
	}
	return 0;
}

static int64_t end_soon(void *arg)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return weft_close(**(int **)arg);
}

/* The stream is a new one, or one whose request was armed before. */
STREAM_TEST(end_is_told_who_waits)
{
	for (int i = 0; i < 4; i++) {
		const void *data;
		int fds[2];

		kit_pair(fds, i & 1);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		if (i & 2)
			kit_warm_up(&stream, fds[1]);
		WEFT_SUPERVISE (scope) {
			kit_go(scope, end_soon, &fds[1]);
			ck_assert_int_eq(weft_stream_peek(&stream, &data), 0);
		}
		ck_assert_int_eq(weft_stream_peek(&stream, &data), 0);
		ck_assert_int_eq(weft_stream_close(&stream), 0);
	}
	return 0;
}

STREAM_TEST(half_closed_peer_still_gets_what_we_write)
{
	for (int tcp = 0; tcp < 2; tcp++) {
		const void *data;
		char back[10] = { 0 };
		size_t done = 0;
		int fds[2];

		kit_pair(fds, tcp);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		ck_assert_int_eq(weft_write_all(fds[1], "ask", 3, NULL), 0);
		ck_assert_int_eq(weft_shutdown(fds[1], SHUT_WR), 0);
		ck_assert_int_eq(weft_stream_peek(&stream, &data), 3);
		/* The bytes to write may be those that the peek shows. */
		ck_assert_int_eq(weft_stream_write_all(&stream, data, 3, &done),
				 0);
		ck_assert_uint_eq(done, 3);
		weft_stream_skip(&stream, 3);
		ck_assert_int_eq(weft_stream_peek(&stream, &data), 0);
		ck_assert_int_eq(
			weft_stream_write_all(&stream, "answer", 6, NULL), 0);
		ck_assert_int_eq(weft_stream_close(&stream), 0);
		ck_assert_int_eq(weft_read_all(fds[1], back, sizeof(back),
					       &done),
				 -ENODATA);
		ck_assert_str_eq(back, "askanswer");
		ck_assert_int_eq(weft_close(fds[1]), 0);
	}
	return 0;
}

static void reset(int fd)
{
	reset_when_closed(fd);
	ck_assert_int_eq(weft_close(fd), 0);
}

STREAM_TEST(reset_is_an_error_after_what_came_before)
{
	for (int warm = 0; warm < 2; warm++) {
		const void *data;
		int fds[2];

		tcp_pair(fds);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		if (warm)
			kit_warm_up(&stream, fds[1]);
		ck_assert_int_eq(weft_write_all(fds[1], "last", 4, NULL), 0);
		ck_assert_int_eq(weft_stream_peek(&stream, &data), 4);
		reset(fds[1]);
		/* The reset does not discard the bytes that were received. */
		ck_assert_int_eq(weft_stream_peek(&stream, &data), 4);
		ck_assert_mem_eq(data, "last", 4);
		weft_stream_skip(&stream, 4);
		ck_assert_int_eq(weft_stream_peek(&stream, &data), -ECONNRESET);
		/* It never looks like the end. */
		ck_assert_int_eq(weft_stream_peek(&stream, &data), -ECONNRESET);
		ck_assert_int_eq(weft_stream_read(&stream, fds, 1),
				 -ECONNRESET);
		ck_assert_int_eq(weft_stream_close(&stream), 0);
	}
	return 0;
}

/* The kernel gives the reason to the write, and an end to the read. */
STREAM_TEST(reset_that_a_write_has_found_is_no_end)
{
	const void *data;
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	reset(fds[1]);
	wait_until(weft__syscall_poll(fds[0], 0) & POLLERR);
	ck_assert_int_eq(weft_stream_write_all(&stream, "x", 1, NULL),
			 -ECONNRESET);
	ck_assert_int_eq(weft_stream_peek(&stream, &data), -ECONNRESET);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return 0;
}

/* Whatever the reason is: the kernel gives it once, and then an end. */
STREAM_TEST(lost_connection_never_looks_like_the_end)
{
	struct sockaddr_in none = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(none);
	struct weft_stream stream;
	int fd, silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const void *data;

	/* A port on which none listens. */
	none.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	EXPECT(bind(silent, (struct sockaddr *)&none, bytes) == 0);
	EXPECT(getsockname(silent, (struct sockaddr *)&none, &bytes) == 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	EXPECT(connect(fd, (struct sockaddr *)&none, bytes) == -1);
	EXPECT(errno_now() == EINPROGRESS);
	weft_stream_init(&stream, fd);
	ck_assert_int_eq(weft_stream_peek(&stream, &data), -ECONNREFUSED);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(weft_stream_peek(&stream, &data), -ECONNRESET);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(silent);
}

/* A SIGPIPE would end the process. */
STREAM_TEST(write_to_a_peer_that_is_gone_is_epipe)
{
	static char bytes[1 << 20];

	for (int tcp = 0; tcp < 2; tcp++) {
		size_t done = 1;
		int fds[2], r;

		kit_pair(fds, tcp);
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

		ck_assert_int_eq(weft_close(fds[1]), 0);
		if (!tcp) {
			ck_assert_int_eq(weft_stream_write_all(&stream, "x", 1,
							       &done),
					 -EPIPE);
			ck_assert_uint_eq(done, 0);
		}
		do
			r = weft_stream_write_all(&stream, bytes, sizeof(bytes),
						  &done);
		while (r == 0 || r == -ECONNRESET);
		ck_assert_int_eq(r, -EPIPE);
		ck_assert_uint_lt(done, sizeof(bytes));
		ck_assert_int_eq(weft_stream_close(&stream), 0);
	}
	return 0;
}

/* ---- Not a stream socket ------------------------------------------------- */

static void expect_error(int fd, int error)
{
	struct weft_stream stream = WEFT_STREAM_INIT(fd);
	const void *data;
	char byte;

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(weft_stream_peek(&stream, &data), error);
		ck_assert_int_eq(weft_stream_read(&stream, &byte, 1), error);
		ck_assert_int_eq(weft_stream_write_all(&stream, "x", 1, NULL),
				 error);
	}
	ck_assert_int_eq(weft_stream_close(&stream), error);
}

STREAM_TEST(what_is_no_descriptor_is_refused)
{
	expect_error(-1, -EBADF);
	expect_error(1 << 20, -EBADF);
	return 0;
}

/* A file may have data to write back, and its close can take long, so a request
 * closes it.  Under TSan, close(2) is called, so that it is seen. */
STREAM_TEST(what_is_no_socket_is_closed_by_a_request)
{
	struct weft_stream stream =
		WEFT_STREAM_INIT(open("/dev/null", O_RDWR | O_CLOEXEC));
	const void *data;
	uint64_t before;

	ck_assert_int_eq(weft_stream_peek(&stream, &data), 0);
	before = requests_made();
	ck_assert_int_eq(weft_stream_close(&stream), 0);
#ifdef WEFT__TSAN
	ck_assert_uint_eq(requests_made(), before);
#else
	ck_assert_uint_eq(requests_made(), before + 1);
#endif
	return 0;
}

/* Streams are not made for datagrams: bytes of a message beyond the buffer are
 * lost. */
STREAM_TEST(datagrams_come_one_by_one)
{
	static unsigned char bytes[5000];
	const void *data;
	int fds[2];

	kit_fill(bytes, sizeof(bytes), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds),
			 0);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	for (size_t n = 1; n < sizeof(bytes); n += 97) {
		ssize_t shown;

		ck_assert_int_eq(send(fds[1], bytes, n, 0), (ssize_t)n);
		shown = weft_stream_peek(&stream, &data);
		ck_assert(shown == (ssize_t)n ||
			  (shown == WEFT__POOL_SMALL_BYTES &&
			   shown < (ssize_t)n));
		kit_check(data, (size_t)shown, 0);
		weft_stream_skip(&stream, (size_t)shown);
	}
	ck_assert_int_eq(peek_within(&stream, WEFT_MS(1)), -ETIMEDOUT);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	return weft_close(fds[1]);
}

START_TEST(outside_a_task_all_is_refused)
{
	const void *data;
	char byte;
	int fds[2];

	socket_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	ck_assert_int_eq(weft_stream_peek(&stream, &data), -EPERM);
	ck_assert_int_eq(weft_stream_read(&stream, &byte, 1), -EPERM);
	ck_assert_int_eq(weft_stream_write_all(&stream, "x", 1, NULL), -EPERM);
	ck_assert_int_eq(weft_stream_close(&stream), -EPERM);
	ck_assert_int_eq(close(fds[0]), 0);
	ck_assert_int_eq(close(fds[1]), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/stream");
	TCase *showing = tcase_create("showing");
	TCase *order = tcase_create("order");
	TCase *ends = tcase_create("ends");
	TCase *none = tcase_create("none");

	tcase_set_timeout(order, 120);
	stream_add_test(showing, peek_shows_the_same_until_it_is_skipped);
	stream_add_test(showing, init_takes_memory_as_it_is);
	if (test_needs(test_has_ring_buffers(),
		       "read_copies_what_lies_in_several_buffers",
		       NEEDS_BUFFERS))
		stream_add_test(showing,
				read_copies_what_lies_in_several_buffers);
	if (test_needs(test_has_ring_buffers(),
		       "peek_shows_one_buffer_after_the_other", NEEDS_BUFFERS))
		stream_add_test(showing, peek_shows_one_buffer_after_the_other);
	stream_add_test(showing, read_all_reads_what_was_asked_for);
	stream_add_test(order, bytes_come_in_their_order);
	stream_add_test(order, nothing_takes_no_buffer);
	stream_add_test(order, write_of_nothing_sends_what_was_put);
	stream_add_test(order, socket_that_does_not_block_will_do);
	stream_add_test(order, wait_on_a_socket_that_does_not_block_can_end);
	stream_add_test(order, reader_may_go_from_worker_to_worker);
	stream_add_test(ends, end_is_told_again_and_again);
	stream_add_test(ends, end_is_told_who_waits);
	stream_add_test(ends, half_closed_peer_still_gets_what_we_write);
	stream_add_test(ends, reset_is_an_error_after_what_came_before);
	stream_add_test(ends, reset_that_a_write_has_found_is_no_end);
	stream_add_test(ends, lost_connection_never_looks_like_the_end);
	stream_add_test(ends, write_to_a_peer_that_is_gone_is_epipe);
	stream_add_test(none, what_is_no_descriptor_is_refused);
	stream_add_test(none, what_is_no_socket_is_closed_by_a_request);
	stream_add_test(none, datagrams_come_one_by_one);
	tcase_add_test(none, outside_a_task_all_is_refused);
	suite_add_tcase(suite, showing);
	suite_add_tcase(suite, order);
	suite_add_tcase(suite, ends);
	suite_add_tcase(suite, none);
	return io_tests_run(suite);
}

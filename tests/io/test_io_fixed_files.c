/* SPDX-License-Identifier: MIT */
/*
 * Tables of fixed files: how places in a ring's table are given out, and which
 * streams have one.
 */
#include "io/request/fixed_files.h"
#include "io/ring/uring/uring.h"
#include "tests/support/engine.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"

/* ---- The table ----------------------------------------------------------- */

static struct weft__ring ring;
static struct weft__fixed_files files;

static void open_it(void)
{
	const char *reason = NULL;

	memset(&files, 0, sizeof(files));
	EXPECT(weft__ring_open(&ring, 8, false, NULL, &reason) == 0);
}

static void close_it(void)
{
	weft__fixed_files_close(&files, &ring);
	weft__ring_close(&ring);
}

/* Kernels before 6.14 have no table of the required kind. */
static bool has_table(const struct weft__ring *of)
{
	return weft__uring(of)->uring.features & (1u << 16);
}

static int enter(int fd)
{
	return weft__fixed_files_enter(&files, &ring, fd);
}

static void leave(int place)
{
	weft__fixed_files_leave(&files, &ring, place);
}

START_TEST(place_is_used_again)
{
	int fds[2], place;

	open_it();
	socket_pair(fds);
	place = enter(fds[0]);
	ck_assert_int_eq(place >= 0, has_table(&ring));
	if (place >= 0) {
		ck_assert_int_ne(enter(fds[1]), place);
		leave(place);
		ck_assert_int_eq(enter(fds[1]), place);
	}
	close_it();
	EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
}
END_TEST

START_TEST(file_that_left_is_closed_by_close)
{
	int fds[2], place;
	char byte;

	open_it();
	socket_pair(fds);
	place = enter(fds[0]);
	if (place >= 0)
		leave(place);
	EXPECT(close(fds[0]) == 0);
	ck_assert_int_eq(read(fds[1], &byte, 1), 0);
	EXPECT(close(fds[1]) == 0);
	close_it();
}
END_TEST

/* The file is closed with its table; the kernel would take a while to close it
 * with the ring. */
START_TEST(file_that_stays_is_closed_with_its_table)
{
	int fds[2];
	char byte;

	open_it();
	socket_pair(fds);
	(void)enter(fds[0]);
	EXPECT(close(fds[0]) == 0);
	weft__fixed_files_close(&files, &ring);
	ck_assert_int_eq(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
	EXPECT(close(fds[1]) == 0);
	weft__ring_close(&ring);
}
END_TEST

/* The kernel makes a table no larger than the process's limit of
 * descriptors. */
static uint32_t places_made(void)
{
	uint32_t places = WEFT__FIXED_FILES_MAX;
#ifndef WEFT_VALGRIND /* Valgrind keeps limits to itself */
	struct rlimit limit;

	EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	while (places > limit.rlim_cur)
		places /= 2;
#endif
	return places;
}

START_TEST(what_is_no_descriptor_has_no_place)
{
	open_it();
	ck_assert_int_eq(enter(1000000), -1);
	ck_assert_uint_eq(files.free_count,
			  has_table(&ring) ? places_made() : 0);
	close_it();
}
END_TEST

START_TEST(full_table_refuses)
{
	struct rlimit limit;
	int fds[2];

	EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = 200;
	EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	open_it();
	socket_pair(fds);
	if (has_table(&ring)) {
		int i = 0;

		do
			ck_assert_int_eq(enter(fds[0]), i++);
		while (files.free_count);
#ifndef WEFT_VALGRIND
		/* Valgrind keeps limits to itself. */
		ck_assert_int_eq(i, 128);
#endif
		ck_assert_int_eq(enter(fds[0]), -1);
		leave(77);
		ck_assert_int_eq(enter(fds[0]), 77);
	}
	close_it();
	EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
}
END_TEST

START_TEST(old_kernel_has_none)
{
	int fds[2];

	open_it();
	weft__uring(&ring)->uring.features &= ~(1u << 16);
	socket_pair(fds);
	ck_assert_int_eq(enter(fds[0]), -1);
	ck_assert_int_eq(enter(fds[0]), -1);
	close_it();
	EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
}
END_TEST

/* ---- Busy streams -------------------------------------------------------- */

static void exchange(struct weft_stream *stream, int peer, unsigned count,
		     bool puts)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned char byte = kit_byte(i), back = 0;

		EXPECT(weft_write_all(peer, &byte, 1, NULL) == 0);
		EXPECT(weft_stream_read(stream, &back, 1) == 1);
		if (puts)
			EXPECT(weft_stream_put(stream, &back, 1) == 0);
		else
			EXPECT(weft_stream_write_all(stream, &back, 1, NULL) ==
			       0);
		EXPECT(peek_within(stream, WEFT_US(20)) == -ETIMEDOUT);
		EXPECT(weft_read(peer, &back, 1) == 1 && back == byte);
	}
}

static bool is_entered(struct weft_stream *stream)
{
	/* relaxed: no other thread changes it. */
	return weft__load(&weft__stream(stream)->file, relaxed) != 0;
}

static void expect_no_file_missing(void)
{
	for (unsigned i = 0; i < weft_runtime_self()->workers_count; i++) {
		struct weft__shard *shard =
			weft__shard(weft_runtime_self()->workers[i]);

		if (shard->files.free_count)
			ck_assert_uint_eq(shard->files.free_count,
					  places_made());
	}
}

static void be_busy(bool tcp, bool puts)
{
	int fds[2];

	kit_pair(fds, tcp);
	{
		struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);
		struct weft__shard *shard = weft__shard(weft__worker_self());
		char byte;

		exchange(&stream, fds[1], 8, puts);
		EXPECT(!is_entered(&stream));
		exchange(&stream, fds[1], 100, puts);
		/* With several workers, the stream may be on another one each
		 * time. */
		if (weft_runtime_self()->workers_count == 1)
			ck_assert_int_eq(is_entered(&stream),
					 has_table(&shard->ring));
		EXPECT(weft_stream_close(&stream) == 0);
		ck_assert_int_eq(weft_read(fds[1], &byte, 1), 0);
	}
	EXPECT(weft_close(fds[1]) == 0);
	expect_no_file_missing();
}

STREAM_TEST(who_is_busy_has_a_place)
{
	for (int i = 0; i < 4; i++)
		be_busy(i & 1, i & 2);
	return 0;
}

/* Tasks on all workers send on the stream while it gets its place and uses
 * it. */
enum { SENDERS = 4, EACH = 300 };

static int64_t send_each(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;

	for (int i = 0; i < EACH; i++) {
		EXPECT(weft_stream_write_all(stream, "s", 1, NULL) == 0);
		EXPECT(weft_yield() == 0);
	}
	return 0;
}

static int64_t read_each(void *arg)
{
	int fd = *(int *)arg;
	char bytes[64];
	ssize_t n, sum = 0;

	while ((n = weft_read(fd, bytes, sizeof(bytes))) > 0)
		sum += n;
	EXPECT(n == 0 && sum == SENDERS * EACH);
	EXPECT(weft_close(fd) == 0);
	return 0;
}

static int64_t close_elsewhere(void *arg)
{
	EXPECT(weft_stream_close(*(struct weft_stream **)arg) == 0);
	return 0;
}

STREAM_TEST(others_send_through_it)
{
	int fds[2], dup_fd;
	struct weft_stream stream;

	tcp_pair(fds);
	dup_fd = fds[1];
	weft_stream_init(&stream, fds[0]);
	WEFT_SUPERVISE (reader) {
		EXPECT(WEFT_GO(reader, read_each, dup_fd) == 0);
		WEFT_SUPERVISE (scope) {
			for (int i = 0; i < SENDERS; i++)
				kit_go(scope, send_each, &stream);
			for (int i = 0; i < 100; i++) {
				EXPECT(weft_write_all(fds[1], "r", 1, NULL) ==
				       0);
				EXPECT(weft_stream_read(&stream, &(char){ 0 },
							1) == 1);
				EXPECT(weft_yield() == 0);
			}
		}
		WEFT_SUPERVISE (closer)
			kit_go(closer, close_elsewhere, &stream);
	}
	expect_no_file_missing();
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/fixed_files");
	TCase *table = tcase_create("table");
	TCase *streams = tcase_create("streams");

	if (!test_needs(test_has_uring(), "io/fixed_files", NEEDS_URING))
		return 77;
	if (!test_needs(test_is_unmasked(WEFT__FEATURE_FIXED_FILES) &&
				test_has_ring_buffers(),
			"io/fixed_files", "fixed_files, " NEEDS_BUFFERS))
		return 77;
	tcase_add_test(table, place_is_used_again);
	tcase_add_test(table, file_that_left_is_closed_by_close);
	tcase_add_test(table, file_that_stays_is_closed_with_its_table);
	tcase_add_test(table, what_is_no_descriptor_has_no_place);
	tcase_add_test(table, full_table_refuses);
	tcase_add_test(table, old_kernel_has_none);
	stream_add_test(streams, who_is_busy_has_a_place);
	stream_add_test(streams, others_send_through_it);
	suite_add_tcase(suite, table);
	suite_add_tcase(suite, streams);
	return io_tests_run(suite);
}

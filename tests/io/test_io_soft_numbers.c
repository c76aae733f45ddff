/* SPDX-License-Identifier: MIT */
/*
 * Suite io/soft/numbers: what a loop over epoll knows of a descriptor's number,
 * which may be another file's by now; on the epoll engine, after reports of
 * others.
 */
#include "tests/support/soft_kit.h"

/* ---- Cancelling --------------------------------------------------------- */

/* compio#345: the cancel of a request that never gets an event. */
SOFT_TEST(request_without_an_event_can_be_cancelled)
{
	char byte;
	int fds[2];

	socket_pair(fds);
	for (int i = 0; i < 100; i++) {
		WEFT_WITHIN (WEFT_US(50))
			EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
		put(fds[1]);
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == 1);
	}
	fill(fds[0]);
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_send(fds[0], &byte, 1, 0) == -ETIMEDOUT);
	EXPECT(weft_close(fds[0]) == 0);
	return weft_close(fds[1]);
}

/* ---- Numbers ------------------------------------------------------------ */

/* golang/go#59545, libxev#230: a number that is closed and used again.  With
 * close(2) weft is not told: that costs time, and no event. */
SOFT_TEST(number_that_close_gave_to_another_file_is_served)
{
	for (int i = 0; i < 4; i++) {
		char byte;
		int fds[2], again[2];

		socket_pair(fds);
		WEFT_WITHIN (WEFT_MS(1))
			EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
		EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
		socket_pair(again);
		EXPECT(again[0] == fds[0]);
		WEFT_WITHIN (WEFT_MS(1))
			EXPECT(weft_recv(again[0], &byte, 1, 0) == -ETIMEDOUT);
		WEFT_SCOPE (scope, NULL) {
			EXPECT(WEFT_GO(scope, put_later, again[1]) == 0);
			WEFT_WITHIN (LONG_NS)
				EXPECT(weft_recv(again[0], &byte, 1, 0) == 1);
		}
		EXPECT(close(again[0]) == 0 && close(again[1]) == 0);
	}
	return 0;
}

/* Is the best of a few below the age at which descriptors are set anew?  An
 * event that was overlooked takes longer each time. */
static bool is_at_once(weft_nsec (*take_ns)(void))
{
	for (int i = 0; i < 10; i++)
		if (take_ns() < WEFT_MS(100))
			return true;
	return false;
}

/* Waits for a number that close(2) has given to another file before. */
static weft_nsec poll_of_another_file_ns(void)
{
	weft_nsec began_ns;
	int fds[2], again[2];

	socket_pair(fds);
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_poll(fds[0], POLLIN) == -ETIMEDOUT);
	EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
	socket_pair(again);
	EXPECT(again[0] == fds[0]);
	began_ns = weft_now();
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, put_later, again[1]) == 0);
		EXPECT(weft_poll(again[0], POLLIN) == POLLIN);
	}
	EXPECT(close(again[0]) == 0 && close(again[1]) == 0);
	return weft_now() - began_ns;
}

/* Other libraries close their descriptors by close(2), and weft polls them: a
 * database's, a resolver's.  That costs no time. */
SOFT_TEST(poll_of_a_number_that_close_gave_to_another_file_is_not_late)
{
	EXPECT(is_at_once(poll_of_another_file_ns));
	return 0;
}

/* A copy keeps the older file open, and epoll with it, but by close(2) weft is
 * not told. */
SOFT_TEST(event_of_an_older_file_is_not_the_newer_ones)
{
	int fds[2], again[2], copy;

	socket_pair(fds);
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_poll(fds[0], POLLIN) == -ETIMEDOUT);
	copy = dup(fds[0]);
	EXPECT(copy >= 0 && close(fds[0]) == 0);
	socket_pair(again);
	EXPECT(again[0] == fds[0]);
	for (int i = 0; i < 10; i++) {
		WEFT_WITHIN (WEFT_MS(1))
			EXPECT(weft_poll(again[0], POLLIN) == -ETIMEDOUT);
		put(fds[1]);
	}
	EXPECT(close(copy) == 0 && close(fds[1]) == 0);
	EXPECT(weft_close(again[0]) == 0);
	return weft_close(again[1]);
}

/* Another descriptor keeps the file open, and epoll with it.  Its events are
 * not taken for those of the file that has the number now, and wake nobody. */
SOFT_TEST(file_that_a_copy_keeps_open_is_no_longer_watched)
{
	char byte;
	int fds[2], again[2], copy;

	socket_pair(fds);
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
	copy = dup(fds[0]);
	EXPECT(copy >= 0);
	EXPECT(weft_close(fds[0]) == 0);
	socket_pair(again);
	EXPECT(again[0] == fds[0]);
	put(fds[1]);
	WEFT_WITHIN (WEFT_MS(5))
		EXPECT(weft_recv(again[0], &byte, 1, 0) == -ETIMEDOUT);
	put(again[1]);
	EXPECT(weft_recv(again[0], &byte, 1, 0) == 1);
	EXPECT(close(copy) == 0 && close(fds[1]) == 0);
	EXPECT(weft_close(again[0]) == 0);
	EXPECT(watched(again[0]) == 0);
	return weft_close(again[1]);
}

/* Reads through a stream what a poll has reported before. */
static weft_nsec stream_after_a_poll_ns(void)
{
	struct weft_stream stream;
	weft_nsec began_ns;
	const void *data;
	int fds[2];

	socket_pair(fds);
	stream = (struct weft_stream)WEFT_STREAM_INIT(fds[0]);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, put_later, fds[1]) == 0);
		EXPECT(weft_poll(fds[0], POLLIN) == POLLIN);
	}
	began_ns = weft_now();
	WEFT_WITHIN (LONG_NS)
		EXPECT(weft_stream_peek(&stream, &data) == 1);
	weft_stream_skip(&stream, 1);
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	return weft_now() - began_ns;
}

SOFT_TEST(stream_reads_what_a_poll_reported_without_delay)
{
	EXPECT(is_at_once(stream_after_a_poll_ns));
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/soft/numbers");
	TCase *numbers = tcase_create("numbers");

	/* The tests choose the engine themselves. */
	unsetenv("WEFT_ENGINE");
	tcase_set_timeout(numbers, 60);
	io_add_test(numbers, request_without_an_event_can_be_cancelled);
	io_add_test(numbers, number_that_close_gave_to_another_file_is_served);
	io_add_test(
		numbers,
		poll_of_a_number_that_close_gave_to_another_file_is_not_late);
	io_add_test(numbers, event_of_an_older_file_is_not_the_newer_ones);
	io_add_test(numbers, stream_reads_what_a_poll_reported_without_delay);
	io_add_test(numbers, file_that_a_copy_keeps_open_is_no_longer_watched);
	suite_add_tcase(suite, numbers);
	return io_tests_run(suite);
}

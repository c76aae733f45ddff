/* SPDX-License-Identifier: MIT */
/*
 * Closing a socket that lingers: close(2) waits for the peer then, and a thread
 * of the kernel's has to do that, not a worker.
 */
#include "tests/support/stream_kit.h"

/* The peer does not read, and close(2) would wait for it. */
static int64_t fill_and_close(void *arg)
{
	static const char zeros[1 << 20];
	struct linger linger = { .l_onoff = 1, .l_linger = 2 };
	int fd = *(int *)arg;
	size_t done;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger,
				    sizeof(linger)),
			 0);
	WEFT_WITHIN(WEFT_MS(50))
		while (weft_write_all(fd, zeros, sizeof(zeros), &done) == 0)
			;
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

IO_TEST(socket_that_lingers_holds_nobody_up)
{
	weft_nsec start, longest = 0;
	int fds[2];

	(void)arg;
	tcp_pair(fds);
	WEFT_SCOPE(all, NULL) {
		ck_assert_int_eq(WEFT_GO(all, fill_and_close, fds[0]), 0);
		for (int i = 0; i < 60; i++) {
			start = weft_now();
			ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
			if (weft_now() - start > longest)
				longest = weft_now() - start;
		}
	}
	ck_assert_uint_lt(longest, WEFT_MS(1000));
	ck_assert_int_eq(weft_close(fds[1]), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/linger");
	TCase *tc = tcase_create("linger");

	tcase_set_timeout(tc, 30);
	io_add_test(tc, socket_that_lingers_holds_nobody_up);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

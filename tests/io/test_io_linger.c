/* SPDX-License-Identifier: MIT */
/*
 * Closing a socket with SO_LINGER: close(2) waits for the peer then, so a
 * kernel thread must do that, not a worker.
 */
#include <linux/sockios.h>

#include "tests/support/errno_now.h"
#include "tests/support/stream_kit.h"

struct scene {
	int fd;
	bool closes, closed;
	weft_nsec took_ns;
	unsigned turns; /* of the task beside it, during the close */
};

/* The peer does not read, so at some point the kernel takes no more bytes.  The
 * kernel takes more whenever an acknowledgement comes, which may be 200 ms
 * late. */
static void stuff(int fd)
{
	static const char zeros[1 << 16];

	for (int still = 0; still < 40; still++) {
		while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
			still = 0;
		ck_assert_int_eq(errno_now(), EAGAIN);
		ck_assert_int_eq(weft_sleep(WEFT_MS(10)), 0);
	}
}

enum { LINGER_S = 5 };

/* close(2) would wait for the peer until that time is over. */
static int64_t stuff_and_close(void *arg)
{
	struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	struct scene *scene = *(struct scene **)arg;
	weft_nsec start_ns;
	int unsent = 0;

	ck_assert_int_eq(setsockopt(scene->fd, SOL_SOCKET, SO_LINGER, &linger,
				    sizeof(linger)),
			 0);
	stuff(scene->fd);
	ck_assert_int_eq(ioctl(scene->fd, SIOCOUTQ, &unsent), 0);
	ck_assert_int_gt(unsent, 0);
	start_ns = weft_now();
	scene->closes = true;
	ck_assert_int_eq(weft_close(scene->fd), 0);
	scene->closed = true;
	scene->took_ns = weft_now() - start_ns;
	return 0;
}

/* There is one worker, so a close that waited in it would leave the other task
 * no turn.  A close that the kernel answers early may leave it none either, but
 * that one is over long before the linger time, however busy the machine is. */
static int64_t close_beside_another(void *arg)
{
	struct scene scene = { 0 };
	struct scene *pointer = &scene;
	int fds[2];

	(void)arg;
	tcp_pair(fds);
	kit_make_small(fds);
	scene.fd = fds[0];
	WEFT_SCOPE(all, NULL) {
		ck_assert_int_eq(WEFT_GO(all, stuff_and_close, pointer), 0);
		while (!scene.closed) {
			ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
			scene.turns += scene.closes && !scene.closed;
		}
	}
	ck_assert(scene.turns > 0 || scene.took_ns < WEFT_SEC(LINGER_S - 1));
	return weft_close(fds[1]);
}

START_TEST(socket_that_lingers_holds_nobody_up)
{
	io_run(close_beside_another, NULL, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/linger");
	TCase *tc = tcase_create("linger");

	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, socket_that_lingers_holds_nobody_up);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

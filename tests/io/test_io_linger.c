/* SPDX-License-Identifier: MIT */
/*
 * Closing a socket with SO_LINGER: close(2) waits for the peer then, so a
 * thread of the pool must do that: not a worker, nor one of the few threads
 * that the kernel has for files.
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

/* ---- Many ---------------------------------------------------------------- */

/* More than a kernel has threads for files, on most machines. */
enum { MANY = 20 };

static unsigned closes_begun, closes_ended;

static int64_t close_stuffed(void *arg)
{
	/* Longer than the test: the peer's end ends it. */
	struct linger linger = { .l_onoff = 1, .l_linger = 40 };
	int fd = *(int *)arg;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger,
				    sizeof(linger)),
			 0);
	stuff(fd);
	closes_begun++;
	ck_assert_int_eq(weft_close(fd), 0);
	closes_ended++;
	return 0;
}

static int use_files(void)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/tmp/weft-linger-%d", (int)getpid());
	r = weft_mkdir(path, 0700);
	if (r < 0)
		return r;
	r = weft_open(path, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0) {
		int fd = r;

		r = weft_fsync(fd);
		ck_assert_int_eq(weft_close(fd), 0);
	}
	WEFT_SHIELD
		ck_assert_int_eq(weft_rmdir(path), 0);
	return r;
}

/* The peers end what lingers before anything is judged: the kernel closes what
 * a process leaves one after the other, and lingers for each. */
static int64_t close_beside_files(void *arg)
{
	int fds[MANY][2], r = -1;

	(void)arg;
	WEFT_SUPERVISE(scope) {
		for (unsigned i = 0; i < MANY; i++) {
			tcp_pair(fds[i]);
			kit_make_small(fds[i]);
			ck_assert_int_eq(weft_go(scope, close_stuffed,
						 &fds[i][0], sizeof(int)),
					 0);
		}
		wait_until(closes_begun == MANY);
		WEFT_WITHIN(WEFT_SEC(10))
			r = use_files();
		for (unsigned i = 0; i < MANY; i++)
			ck_assert_int_eq(weft_close(fds[i][1]), 0);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(closes_ended, MANY);
	return 0;
}

/* An interrupted task does not wait; the kernel sends what is left. */
static int64_t close_in_vain(void *arg)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 40 };
	int fds[2];
	int r = -1;

	tcp_pair(fds);
	kit_make_small(fds);
	ck_assert_int_eq(setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &linger,
				    sizeof(linger)),
			 0);
	stuff(fds[0]);
	WEFT_WITHIN(WEFT_MS(*(int *)arg))
		r = weft_close(fds[0]);
	ck_assert_int_eq(r, 0);
	ck_assert_int_lt(fcntl(fds[0], F_GETFD), 0);
	return weft_close(fds[1]);
}

/* In its linger time, and before it. */
START_TEST(interrupted_task_does_not_linger)
{
	weft_nsec began_ns = weft_now();

	io_run(close_in_vain, (int[]){ 20 }, 1);
	io_run(close_in_vain, (int[]){ 0 }, 1);
	ck_assert_uint_lt(weft_now() - began_ns, WEFT_SEC(20));
}
END_TEST

START_TEST(sockets_that_linger_hold_up_no_files)
{
	io_run(close_beside_files, NULL, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/linger");
	TCase *tc = tcase_create("linger");

	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, socket_that_lingers_holds_nobody_up);
	tcase_add_test(tc, sockets_that_linger_hold_up_no_files);
	tcase_add_test(tc, interrupted_task_does_not_linger);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

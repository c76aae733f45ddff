/* SPDX-License-Identifier: MIT */
/*
 * When weft_close() returns, the kernel has let go of the file: the other end
 * of a pipe or FIFO is at its end, a write to it is EPIPE, and an address can
 * be bound again.
 *
 * Each look is one plain call that does not wait, and a file that is released a
 * moment later shows only in some rounds.  A FIFO that was read is left out: a
 * thread of the kernel does that, and drops the file when it is done, see
 * docs/decisions/0036-close-meets-begin.md.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/support/errno_now.h"
#include "tests/support/io_kit.h"

enum { ROUNDS = 5000 };

static int64_t read_one(void *arg)
{
	char byte;

	return weft_read(*(int *)arg, &byte, 1);
}

static void pipe_new(int fds[2])
{
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
}

static void expect_end(int fd)
{
	char byte;

	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(read(fd, &byte, 1), 0);
	ck_assert_int_eq(weft_close(fd), 0);
}

static void expect_no_reader(int fd)
{
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(write(fd, "x", 1), -1);
	ck_assert_int_eq(errno_now(), EPIPE);
	ck_assert_int_eq(weft_close(fd), 0);
}

IO_TEST(reader_of_a_pipe_sees_the_end)
{
	for (int i = 0; i < ROUNDS; i++) {
		int fds[2];

		pipe_new(fds);
		ck_assert_int_eq(weft_close(fds[1]), 0);
		expect_end(fds[0]);
	}
	return 0;
}

/* The reader waited for the byte, in the kernel or on its way there. */
IO_TEST(writer_of_a_pipe_sees_that_its_reader_is_gone)
{
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < ROUNDS; i++) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		struct weft_task task;
		int64_t r = 0;
		int fds[2];

		pipe_new(fds);
		opts.ret_task = &task;
		WEFT_SCOPE(all, NULL) {
			ck_assert_int_eq(weft_go_opts(all, read_one, &fds[0],
						      sizeof(int), &opts),
					 0);
			for (int k = 0; k < i % 3; k++)
				ck_assert_int_eq(weft_yield(), 0);
			ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
			ck_assert_int_eq(weft_join(task, &r), 0);
			ck_assert_int_eq(r, 1);
		}
		ck_assert_int_eq(weft_close(fds[0]), 0);
		expect_no_reader(fds[1]);
	}
	return 0;
}

static char path[64];

static void *open_to_write(void *arg)
{
	int *fd = arg;

	*fd = open(path, O_WRONLY | O_CLOEXEC);
	return NULL;
}

IO_TEST(fifo_has_no_reader_after_the_close)
{
	signal(SIGPIPE, SIG_IGN);
	snprintf(path, sizeof(path), "/tmp/weft-fifo4-%d", (int)getpid());
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	for (int i = 0; i < ROUNDS / 2; i++) {
		pthread_t thread;
		int fds[2];

		ck_assert_int_eq(pthread_create(&thread, NULL, open_to_write,
						&fds[1]),
				 0);
		fds[0] = weft_open(path, O_RDONLY, 0);
		ck_assert_int_ge(fds[0], 0);
		pthread_join(thread, NULL);
		ck_assert_int_eq(weft_close(fds[0]), 0);
		expect_no_reader(fds[1]);
		ck_assert_int_eq(open(path, O_WRONLY | O_NONBLOCK), -1);
		ck_assert_int_eq(errno_now(), ENXIO);
	}
	unlink(path);
	return 0;
}

static int64_t connect_once(void *arg)
{
	int fd = weft_tcp_connect(arg, NULL);

	ck_assert_int_ge(fd, 0);
	return weft_close(fd);
}

static void accept_one(int fd, char *text)
{
	int got;

	WEFT_SCOPE(all, NULL) {
		ck_assert_int_eq(weft_go(all, connect_once, text,
					 WEFT_ADDR_TEXT_BYTES),
				 0);
		got = weft_accept(fd, NULL);
		ck_assert_int_ge(got, 0);
		ck_assert_int_eq(weft_close(got), 0);
	}
}

IO_TEST(address_can_be_bound_again)
{
	char address[32], text[WEFT_ADDR_TEXT_BYTES];
	int fd;

	/* Others bind ports of 127.0.0.1 meanwhile. */
	snprintf(address, sizeof(address), "127.77.%u.%u:0",
		 (unsigned)getpid() >> 8 & 255, (unsigned)getpid() & 255);
	fd = tcp_listener_at(address, text);
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 2)
			accept_one(fd, text);
		ck_assert_int_eq(weft_close(fd), 0);
		fd = weft_tcp_listen(text, NULL);
		ck_assert_msg(fd >= 0, "round %d: %d", i, fd);
	}
	return weft_close(fd);
}

int main(void)
{
	Suite *suite = suite_create("io/close_release");
	TCase *tc = tcase_create("release");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, reader_of_a_pipe_sees_the_end);
	io_add_test(tc, writer_of_a_pipe_sees_that_its_reader_is_gone);
	io_add_test(tc, fifo_has_no_reader_after_the_close);
	io_add_test(tc, address_can_be_bound_again);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

/* SPDX-License-Identifier: MIT */
/*
 * When weft_close() returns, the kernel has let go of the file: the other end
 * of a pipe or FIFO is at its end, a write to it is EPIPE, an address can be
 * bound again, and a lock is free.
 *
 * Each look is one plain call that does not wait, and a file that is released a
 * moment later shows only in some rounds.  Threads of the kernel's (iou-wrk)
 * that carry out requests keep files so; there are none:
 * docs/decisions/0061-transfers-that-need-a-thread-have-one-of-the-pool.md.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "io/os/syscall.h"
#include "tests/support/errno_now.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/threads.h"

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

/* Else io_uring has a thread of the kernel's read a pipe. */
static bool pipes_can_be_tried(void)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	int fds[2];
	bool can;

	pipe_new(fds);
	can = weft__syscall_readv(fds[0], &iov, 1, -1, RWF_NOWAIT) == -EAGAIN;
	close_both(fds);
	return can;
}

/* The reader waited for the byte, in the kernel or on its way there. */
IO_TEST(writer_of_a_pipe_sees_that_its_reader_is_gone)
{
	if (!test_needs(pipes_can_be_tried(), __func__,
			"pipes with RWF_NOWAIT (Linux 6.4)"))
		return 0;
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

/* ---- Uses before the close ----------------------------------------------- */

static int threads_of_the_kernel(void)
{
	return threads_count("iou-wrk", true);
}

/* A FIFO that is ready is read and written by the kernel's ring itself since
 * Linux 6.9.  Before, a thread of the kernel's did that. */
static bool fifos_need_no_thread(int fd)
{
	char byte;

	ck_assert_int_eq(weft_write(fd, "b", 1), 1);
	ck_assert_int_eq(weft_read(fd, &byte, 1), 1);
	return !threads_of_the_kernel();
}

/* False: not on this kernel. */
static bool fifo_begin(const char *test)
{
	int fd;
	bool can;

	signal(SIGPIPE, SIG_IGN);
	snprintf(path, sizeof(path), "/tmp/weft-fifo5-%d", (int)getpid());
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	can = test_needs(fifos_need_no_thread(fd), test,
			 "requests on FIFOs without threads (Linux 6.9)");
	ck_assert_int_eq(weft_close(fd), 0);
	return can;
}

static int fifo_open(int flags)
{
	int fd = weft_open(path, flags, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void *write_and_leave(void *arg)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	(void)arg;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "hello", 5), 5);
	close(fd);
	return NULL;
}

static void read_to_the_end(void)
{
	pthread_t thread;
	char text[8];
	int fd;

	ck_assert_int_eq(pthread_create(&thread, NULL, write_and_leave, NULL),
			 0);
	fd = fifo_open(O_RDONLY);
	ck_assert_int_eq(weft_read(fd, text, sizeof(text)), 5);
	ck_assert_int_eq(weft_read(fd, text, sizeof(text)), 0);
	ck_assert_int_eq(weft_close(fd), 0);
	pthread_join(thread, NULL);
}

IO_TEST(fifo_that_was_read_to_its_end_has_no_reader)
{
	int rounds = fifo_begin(__func__) ? ROUNDS / 5 : 0;

	for (int i = 0; i < rounds; i++) {
		read_to_the_end();
		ck_assert_int_eq(open(path, O_WRONLY | O_NONBLOCK), -1);
		ck_assert_int_eq(errno_now(), ENXIO);
	}
	unlink(path);
	return 0;
}

/* Fills it; the reader goes meanwhile, so that the next write fails. */
static void write_until_the_reader_goes(void)
{
	static const char zeros[1 << 16];
	int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int fd = fifo_open(O_WRONLY);
	ssize_t r;

	ck_assert_int_ge(fcntl(fd, F_SETPIPE_SZ, 4096), 4096);
	r = weft_write(fd, zeros, (size_t)fcntl(fd, F_GETPIPE_SZ));
	ck_assert_int_gt(r, 0);
	close(reader);
	do
		r = weft_write(fd, zeros, sizeof(zeros));
	while (r > 0);
	ck_assert_int_eq(r, -EPIPE);
	ck_assert_int_eq(weft_close(fd), 0);
}

/* Without a writer a read is 0, and with one -EAGAIN. */
IO_TEST(fifo_that_was_written_has_no_writer)
{
	int rounds = fifo_begin(__func__) ? ROUNDS / 5 : 0;

	for (int i = 0; i < rounds; i++) {
		char byte;
		int fd;

		write_until_the_reader_goes();
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(read(fd, &byte, 1), 0);
		close(fd);
	}
	unlink(path);
	return 0;
}

static int sync_all(int fd)
{
	return weft_fsync(fd);
}

static int sync_data(int fd)
{
	return weft_fdatasync(fd);
}

static int write_at(int fd)
{
	return weft_pwrite(fd, "text", 4, 0) == 4 ? 0 : -EIO;
}

static int write_on(int fd)
{
	return weft_write(fd, "text", 4) == 4 ? 0 : -EIO;
}

static int (*const uses[])(int fd) = { sync_all, sync_data, write_at,
				       write_on };
enum { USES = sizeof(uses) / sizeof(uses[0]) };

/* Of a file that another may lock now.  Its directory is on a disk, or not. */
static void use_locked(const char *dir, int (*use)(int fd))
{
	int fd, other;

	if (access(dir, W_OK) < 0)
		return;
	snprintf(path, sizeof(path), "%s/weft-lock5-%d", dir, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	other = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(other, 0);
	unlink(path);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(use(fd), 0);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
	close(other);
}

IO_TEST(file_that_was_written_is_unlocked)
{
	for (int i = 0; i < ROUNDS / 10; i++) {
		use_locked("/tmp", uses[i % USES]);
		use_locked("/dev/shm", uses[i % USES]);
	}
	return 0;
}

/* So the uses above are not right by luck. */
IO_TEST(no_thread_of_the_kernel_is_needed)
{
	for (int i = 0; i < USES; i++) {
		use_locked("/tmp", uses[i]);
		use_locked("/dev/shm", uses[i]);
		ck_assert_msg(!threads_of_the_kernel(), "use %d", i);
	}
	if (fifo_begin(__func__)) {
		read_to_the_end();
		ck_assert_msg(!threads_of_the_kernel(), "reading");
		write_until_the_reader_goes();
		ck_assert_msg(!threads_of_the_kernel(), "writing");
	}
	unlink(path);
	return 0;
}

/* ---- Addresses ----------------------------------------------------------- */

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
	io_add_test(tc, fifo_that_was_read_to_its_end_has_no_reader);
	io_add_test(tc, fifo_that_was_written_has_no_writer);
	io_add_test(tc, file_that_was_written_is_unlocked);
	io_add_test(tc, no_thread_of_the_kernel_is_needed);
	io_add_test(tc, address_can_be_bound_again);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

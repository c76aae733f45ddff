/* SPDX-License-Identifier: MIT */
/*
 * Files of a server, or a disk, that takes its time: a read or a write of one
 * holds no worker, and has the error that the server gives.  The only worker is
 * needed to let the server answer.  Memory does not take its time.
 */
#include "io/os/look.h"
#include "tests/support/fuse_kit.h"
#include "tests/support/expect.h"

static struct fuse fuse;

struct transfer {
	ssize_t (*fn)(int fd, void *buf, size_t bytes, off_t offset);
	int fd;
};

static ssize_t put(int fd, void *buf, size_t bytes, off_t offset)
{
	return weft_pwrite(fd, buf, bytes, offset);
}

static ssize_t get(int fd, void *buf, size_t bytes, off_t offset)
{
	return weft_pread(fd, buf, bytes, offset);
}

static ssize_t get_at_position(int fd, void *buf, size_t bytes, off_t offset)
{
	(void)offset;
	return weft_read(fd, buf, bytes);
}

static ssize_t put_at_position(int fd, void *buf, size_t bytes, off_t offset)
{
	(void)offset;
	return weft_write(fd, buf, bytes);
}

static int64_t let_all(void *arg)
{
	char byte, error = *(char *)arg;

	while (weft_read(fuse.asked, &byte, 1) == 1)
		EXPECT(weft_write(fuse.let, &error, 1) == 1);
	return 0;
}

/* Twice: the second time it is known how the file answers. */
static void transfer_and_let(const struct transfer *transfer, char error)
{
	char buf[100] = { 0 };

	WEFT_SUPERVISE (scope) {
		EXPECT(WEFT_GO(scope, let_all, error) == 0);
		for (int i = 0; i < 2; i++)
			EXPECT(transfer->fn(transfer->fd, buf, sizeof(buf),
					    4096) ==
			       (error ? -error : (ssize_t)sizeof(buf)));
		weft_scope_cancel(scope);
	}
}

static int64_t transfer_task(void *arg)
{
	struct transfer *transfer = arg;
	static const int flags[] = { 0, O_NONBLOCK, O_DIRECT,
				     O_DIRECT | O_NONBLOCK };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		transfer->fd = weft_open(fuse.file, O_RDWR | flags[i], 0);
		EXPECT(transfer->fd >= 0);
		transfer_and_let(transfer, 0);
		transfer_and_let(transfer, EIO);
		transfer_and_let(transfer, EAGAIN);
		EXPECT(weft_close(transfer->fd) == 0);
	}
	return 0;
}

START_TEST(no_transfer_holds_the_worker)
{
	static struct transfer transfers[] = {
		{ get, -1 },
		{ put, -1 },
		{ get_at_position, -1 },
		{ put_at_position, -1 },
	};
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	if (_i / 4)
		opts.engine = WEFT_ENGINE_EPOLL;
	if (!test_needs(fuse_begin(&fuse), "no_transfer_holds_the_worker",
			NEEDS_FUSE))
		return;
	ck_assert_int_eq(io_run_opts(transfer_task, &transfers[_i % 4], &opts),
			 0);
	fuse_end(&fuse);
}
END_TEST

/* ---- A disk -------------------------------------------------------------- */

static uint64_t jobs_done(void)
{
	struct weft_blocking_stats stats;

	EXPECT(weft_blocking_stats_get(weft_runtime_self(), &stats) == 0);
	return stats.done;
}

static int64_t read_directly(void *arg)
{
	static char buf[4096] __attribute__((aligned(4096)));
	char path[] = "/tmp/weft-direct-XXXXXX";
	int fd = mkstemp(path);
	uint64_t before;

	(void)arg;
	EXPECT(unlink(path) == 0);
	EXPECT(write(fd, buf, sizeof(buf)) == sizeof(buf));
	if (test_needs(fcntl(fd, F_SETFL, O_DIRECT | O_NONBLOCK) == 0, __func__,
		       "O_DIRECT")) {
		before = jobs_done();
		EXPECT(weft_pread(fd, buf, sizeof(buf), 0) == sizeof(buf));
		EXPECT(jobs_done() == before + 1);
	}
	return weft_close(fd);
}

/* O_NONBLOCK means nothing to a disk: a read that no call makes without waiting
 * is one for a thread. */
START_TEST(no_direct_read_holds_the_worker)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	ck_assert_int_eq(setenv("WEFT_MASK", "rwf_nowait", 1), 0);
	ck_assert_int_eq(setenv("WEFT_ENGINE", "epoll", 1), 0);
	opts.workers = 1;
	ck_assert_int_eq(io_run_opts(read_directly, NULL, &opts), 0);
}
END_TEST

/* ---- Memory -------------------------------------------------------------- */

/* tmpfs waits for no disk. */
static bool is_memory(int fd)
{
	struct statx status;

	return weft__look_fd(fd, STATX_TYPE | WEFT__LOOK_MOUNT, &status) == 0 &&
	       weft__look_is_local_file(&status) &&
	       weft__look_storage(fd, &status) == WEFT__STORAGE_MEMORY;
}

/* A new file there; or -1: there is none. */
static int memory_file(const char *test)
{
	char path[] = "/dev/shm/weft-memory-XXXXXX";
	int fd = mkstemp(path);

	if (fd >= 0)
		EXPECT(unlink(path) == 0);
	if (test_needs(is_memory(fd), test, "tmpfs in /dev/shm (Linux 6.0)"))
		return fd;
	close(fd);
	return -1;
}

IO_TEST(writes_to_memory_need_no_thread)
{
	int fd = memory_file(__func__);
	struct weft_stats stats;

	if (fd < 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		EXPECT(weft_pwrite(fd, "abc", 3, i) == 3);
		EXPECT(weft_write(fd, "de", 2) == 2);
	}
	EXPECT(jobs_done() == 0);
	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	EXPECT(stats.total.ops == 0);
	return weft_close(fd);
}

/* One that would wait behind a job of the pool, or that takes long. */
IO_TEST(write_to_memory_has_a_thread_where_it_needs_one)
{
	static char data[2 << 20];
	int fd = memory_file(__func__);
	struct weft__fd *entry;

	if (fd < 0)
		return 0;
	EXPECT(weft__fd_get(&weft__reactor(weft_runtime_self())->fds, fd,
			    &entry) == 0);
	EXPECT(weft_pwrite(fd, "abc", 3, 0) == 3);
	EXPECT(jobs_done() == 0);
	/* relaxed: a hint. */
	weft__or(&entry->kind, (uint8_t)WEFT__FD_POOLED, relaxed);
	EXPECT(weft_pwrite(fd, "abc", 3, 0) == 3);
	EXPECT(jobs_done() == 1);
	EXPECT(weft_write(fd, data, sizeof(data)) == sizeof(data));
	EXPECT(jobs_done() == 2);
	return weft_close(fd);
}

int main(void)
{
	Suite *suite = suite_create("io/served");
	TCase *served = tcase_create("served");

	io_add_test(served, writes_to_memory_need_no_thread);
	io_add_test(served, write_to_memory_has_a_thread_where_it_needs_one);
	tcase_add_test(served, no_direct_read_holds_the_worker);
	tcase_add_loop_test(served, no_transfer_holds_the_worker, 0, 8);
	suite_add_tcase(suite, served);
	return io_tests_run(suite);
}

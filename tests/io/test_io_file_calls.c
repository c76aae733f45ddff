/* SPDX-License-Identifier: MIT */
/*
 * Calls on open files that the pool makes: they do what the C library's do, a
 * close waits for them; a close and a sync report the errors of a device; and
 * reads and writes with O_DIRECT in memory that weft gives.
 */
#include <sys/syscall.h>

#include "io/os/syscall.h"
#include "runtime/base/futex.h"
#include "tests/support/child_kit.h"
#include "tests/support/dir_kit.h"
#include "tests/support/expect.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_calls.h"

/* Not inlined: the address of errno changes with the task's thread. */
__attribute__((noinline)) static long result_of(long r)
{
	return r < 0 ? -errno : r;
}

#define SAME(weft, posix)                                                  \
	do {                                                               \
		long is_ = (long)(weft), should_ = result_of(posix);       \
		ck_assert_msg(is_ == should_, "line %d: %s: %ld, not %ld", \
			      __LINE__, #weft, is_, should_);              \
	} while (0)

/* An unnamed file; -1: there is no such place here. */
static int file_in(const char *place, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/weft-calls-XXXXXX", place);
	fd = mkostemp(path, flags | O_CLOEXEC);
	if (fd < 0)
		fprintf(stderr, "%s: skipped, %s\n", place, strerror(errno));
	else
		unlink(path);
	return fd;
}

/* ---- The same as the C library ------------------------------------------- */

static void calls_on(int our, int their)
{
	struct timespec times[] = { { 77, 5 }, { 99, 6 } };
	struct stat a, b;

	SAME(weft_ftruncate(our, 10000), ftruncate(their, 10000));
	SAME(weft_ftruncate(our, -1), ftruncate(their, -1));
	SAME(weft_fallocate(our, 0, 0, 50000), fallocate(their, 0, 0, 50000));
	SAME(weft_fallocate(our, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			    8192, 4096),
	     fallocate(their, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192,
		       4096));
	SAME(weft_fallocate(our, 0, -1, 5), fallocate(their, 0, -1, 5));
	SAME(weft_fchmod(our, 0705), fchmod(their, 0705));
	SAME(weft_fchown(our, (uid_t)-1, getgid()),
	     fchown(their, (uid_t)-1, getgid()));
	SAME(weft_futimens(our, times), futimens(their, times));
	SAME(weft_sync_file_range(our, 0, 0, SYNC_FILE_RANGE_WRITE),
	     sync_file_range(their, 0, 0, SYNC_FILE_RANGE_WRITE));
	SAME(weft_sync_file_range(our, 0, 0, 77u << 8),
	     sync_file_range(their, 0, 0, 77u << 8));
	ck_assert_int_eq(fstat(our, &a), 0);
	ck_assert_int_eq(fstat(their, &b), 0);
	ck_assert_int_eq(a.st_size, 50000);
	ck_assert_int_eq(b.st_size, 50000);
	ck_assert_uint_eq(a.st_mode, b.st_mode);
	ck_assert_int_eq(a.st_mtim.tv_sec, 99);
	ck_assert_int_eq(a.st_atim.tv_nsec, 5);
	SAME(weft_futimens(our, NULL), futimens(their, NULL));
	ck_assert_int_eq(fstat(our, &a), 0);
	ck_assert_int_gt(a.st_mtim.tv_sec, 99);
}

IO_TEST(calls_do_what_the_c_library_does)
{
	int fds[2];

	for (int i = 0; i < DIR_PLACES; i++) {
		int their, our = file_in(dir_places[i], 0);

		if (our < 0)
			continue;
		their = file_in(dir_places[i], 0);
		calls_on(our, their);
		close(our);
		close(their);
	}
	/* Of a file in memory, for others may have much to write back. */
	fds[0] = file_in("/dev/shm", 0);
	if (fds[0] >= 0) {
		ck_assert_int_eq(weft_syncfs(fds[0]), 0);
		close(fds[0]);
	}
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	SAME(weft_ftruncate(fds[0], 1), ftruncate(fds[0], 1));
	SAME(weft_fallocate(fds[1], 0, 0, 1), fallocate(fds[1], 0, 0, 1));
	SAME(weft_sync_file_range(fds[0], 0, 0, 0),
	     sync_file_range(fds[0], 0, 0, 0));
	close_both(fds);
	return 0;
}

IO_TEST(no_descriptor_is_ebadf)
{
	static const int bad[] = { -1, AT_FDCWD, 1000000 };

	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(weft_ftruncate(bad[i], 1), -EBADF);
		ck_assert_int_eq(weft_fallocate(bad[i], 0, 0, 1), -EBADF);
		ck_assert_int_eq(weft_fchmod(bad[i], 0700), -EBADF);
		ck_assert_int_eq(weft_fchown(bad[i], 0, 0), -EBADF);
		ck_assert_int_eq(weft_futimens(bad[i], NULL), -EBADF);
		ck_assert_int_eq(weft_sync_file_range(bad[i], 0, 0, 0), -EBADF);
		ck_assert_int_eq(weft_syncfs(bad[i]), -EBADF);
	}
	return 0;
}

/* ---- A close beside a call ----------------------------------------------- */

/* Holds up the system call of the pool's thread. */
static weft__atomic(uint32_t) entered, goes_on;
static bool holds;

long __real_weft__syscall_any(long number, const long words[6]);
long __wrap_weft__syscall_any(long number, const long words[6]);

long __wrap_weft__syscall_any(long number, const long words[6])
{
	if (holds && number == SYS_ftruncate) {
		weft__store(&entered, 1u, release);
		while (!weft__load(&goes_on, acquire))
			thread_pause_ns(100000);
	}
	return __real_weft__syscall_any(number, words);
}

struct closing {
	int fd;
	bool closed;
};

static int64_t close_it(void *arg)
{
	struct closing *closing = *(struct closing **)arg;

	EXPECT(weft_close(closing->fd) == 0);
	closing->closed = true;
	return 0;
}

static int64_t truncate_it(void *arg)
{
	/* It has begun, so its result is that of the call. */
	EXPECT(weft_ftruncate(*(int *)arg, 100) == 0);
	return 0;
}

IO_TEST(close_waits_for_a_call_that_has_begun)
{
	struct closing closing = { .fd = file_in("/tmp", 0) };
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct closing *address = &closing;
	struct weft_task task;

	weft__store(&entered, 0u, release);
	weft__store(&goes_on, 0u, release);
	holds = true;
	opts.ret_task = &task;
	WEFT_SCOPE (scope, NULL) {
		ck_assert_int_eq(weft_go_opts(scope, truncate_it, &closing.fd,
					      sizeof(int), &opts),
				 0);
		wait_until(weft__load(&entered, acquire) == 1);
		ck_assert_int_eq(WEFT_GO(scope, close_it, address), 0);
		weft_cancel(task);
		/* A call that comes before the close is made. */
		wait_until(weft_fchmod(closing.fd, 0700) == -EBADF);
		ck_assert(!closing.closed);
		weft__store(&goes_on, 1u, release);
	}
	ck_assert(closing.closed);
	holds = false;
	return 0;
}

/* ---- O_DIRECT ------------------------------------------------------------ */

static void direct_in(const char *place)
{
	int fd = file_in(place, O_DIRECT);
	struct weft_direct out, in;
	char *bytes;

	if (fd < 0)
		return;
	ck_assert_int_eq(weft_direct_alloc(&out, fd, 10000), 0);
	ck_assert_int_eq(weft_direct_alloc(&in, fd, 10000), 0);
	ck_assert_uint_ge(out.bytes, 10000);
	ck_assert_uint_eq(out.bytes % out.offset_align, 0);
	ck_assert_uint_eq(out.bytes % out.memory_align, 0);
	ck_assert_uint_eq((uintptr_t)out.memory % out.memory_align, 0);
	bytes = out.memory;
	for (size_t i = 0; i < out.bytes; i++) {
		ck_assert_int_eq(bytes[i], 0);
		bytes[i] = (char)(i / 7);
	}
	ck_assert_int_eq(weft_pwrite_all(fd, out.memory, out.bytes,
					 (off_t)out.offset_align, NULL),
			 0);
	ck_assert_int_eq(weft_pread_all(fd, in.memory, in.bytes,
					(off_t)in.offset_align, NULL),
			 0);
	ck_assert_mem_eq(in.memory, out.memory, out.bytes);
	/* The file system refuses a wrong alignment as it does for read(2). */
	SAME(weft_pread(fd, bytes + 1, out.offset_align, 0),
	     pread(fd, bytes + 1, out.offset_align, 0));
	SAME(weft_pread(fd, bytes, out.offset_align, 3),
	     pread(fd, bytes, out.offset_align, 3));
	SAME(weft_pwrite(fd, bytes, 5, 0), pwrite(fd, bytes, 5, 0));
	weft_direct_free(&out);
	weft_direct_free(&out);
	weft_direct_free(&in);
	weft_direct_free(NULL);
	close(fd);
}

IO_TEST(direct_reads_and_writes_work)
{
	struct weft_direct none = { .memory = &none };
	int fd = file_in("/tmp", 0);

	direct_in("/var/tmp");
	direct_in("/dev/shm");
	ck_assert_int_eq(weft_direct_alloc(NULL, fd, 1), -EFAULT);
	ck_assert_int_eq(weft_direct_alloc(&none, fd, 0), -EINVAL);
	ck_assert_int_eq(weft_direct_alloc(&none, fd, SIZE_MAX), -EINVAL);
	ck_assert_int_eq(weft_direct_alloc(&none, -1, 1), -EBADF);
	ck_assert_ptr_eq(none.memory, &none);
	close(fd);
	return 0;
}

/* ---- Devices with errors ------------------------------------------------- */

struct storing {
	char path[32];
	int fds[2];
};

/* The sync meets the error; or the close, of a server's file. */
static int64_t store_in_vain(void *arg)
{
	struct storing *it = arg;

	NEED(weft_replace_file(AT_FDCWD, it->path, "new", 3, NULL) == -EIO);
	NEED(weft_close(it->fds[0]) == -EIO);
	NEED(weft_close(it->fds[1]) == -ENOSPC);
	return 0;
}

/* Calls are refused alone, so no ring is used. */
static int64_t run_without_storing(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct storing *it = arg;
	unsigned sync = SYS_fsync;

	NEED(refuse_calls(&sync, 1, EIO));
	NEED(refuse_call_with(SYS_close, 0, (unsigned)it->fds[0], EIO));
	NEED(refuse_call_with(SYS_close, 0, (unsigned)it->fds[1], ENOSPC));
	NEED(unsetenv("WEFT_ENGINE") == 0);
	opts.engine = WEFT_ENGINE_EPOLL;
	return weft_run(store_in_vain, it, &opts);
}

START_TEST(file_that_cannot_be_stored_is_an_error)
{
	struct storing it = { .path = "/tmp/weft-test-XXXXXX" };
	char text[4] = "";

	it.fds[0] = mkostemp(it.path, O_CLOEXEC);
	it.fds[1] = fcntl(it.fds[0], F_DUPFD_CLOEXEC, 0);
	ck_assert_int_eq(write(it.fds[0], "old", 3), 3);
	child_run(run_without_storing, &it);
	close(it.fds[0]);
	close(it.fds[1]);
	it.fds[0] = open(it.path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(read(it.fds[0], text, sizeof(text)), 3);
	ck_assert_str_eq(text, "old");
	close(it.fds[0]);
	unlink(it.path);
}
END_TEST

START_TEST(outside_of_a_task_is_eperm)
{
	struct weft_direct direct;

	ck_assert_int_eq(weft_ftruncate(0, 1), -EPERM);
	ck_assert_int_eq(weft_syncfs(0), -EPERM);
	ck_assert_int_eq(weft_direct_alloc(&direct, 0, 1), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/file_calls");
	TCase *files = tcase_create("files");

	tcase_set_timeout(files, 60);
	io_add_test(files, calls_do_what_the_c_library_does);
	io_add_test(files, no_descriptor_is_ebadf);
	io_add_test(files, close_waits_for_a_call_that_has_begun);
	io_add_test(files, direct_reads_and_writes_work);
	if (test_needs(test_can(child_may_refuse),
		       "file_that_cannot_be_stored_is_an_error",
		       NEEDS_REFUSED_CALLS))
		tcase_add_test(files, file_that_cannot_be_stored_is_an_error);
	tcase_add_test(files, outside_of_a_task_is_eperm);
	suite_add_tcase(suite, files);
	return io_tests_run(suite);
}

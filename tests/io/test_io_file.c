/* SPDX-License-Identifier: MIT */
/*
 * Files: reads and writes that the page cache serves, those that it does not
 * serve, opening files, and filesystems without room.
 */
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/support/features.h"
#include "tests/support/io_kit.h"
#include "tests/support/page_cache.h"

enum { FILE_BYTES = 1 << 20 };

static char expected[FILE_BYTES], got[FILE_BYTES + 1];

static void fill_expected(void)
{
	for (size_t i = 0; i < sizeof(expected); i++)
		expected[i] = (char)(i * 7 + i / 4096);
}

/* Returns an unnamed file of one megabyte on a disk. */
static int file_new(int flags)
{
	char name[] = "/var/tmp/weft-file-XXXXXX";
	int fd = mkostemp(name, flags | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	unlink(name);
	fill_expected();
	ck_assert_int_eq(write(fd, expected, FILE_BYTES), FILE_BYTES);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void sync_and_evict(int fd)
{
	fsync(fd);
	evict(fd);
}

static struct weft_worker_stats stats(void)
{
	struct weft_stats all;

	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &all), 0);
	return all.total;
}

/* ---- Reading ---------------------------------------------------------- */

IO_TEST(cached_reads_do_not_visit_the_ring)
{
	struct weft_worker_stats before;
	int fd = file_new(0);

	before = stats();
	for (int i = 0; i < 100; i++) {
		off_t at = i * 4096;

		ck_assert_int_eq(weft_pread(fd, got, 4096, at), 4096);
		ck_assert_mem_eq(got, expected + at, 4096);
	}
	ck_assert_uint_eq(stats().ops, before.ops);
	ck_assert_uint_ge(stats().ops_ready, before.ops_ready + 100);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

IO_TEST(uncached_reads_are_waited_for)
{
	struct weft_worker_stats before;
	int fd = file_new(0);
	size_t done;

	if (!test_needs(!is_on_tmpfs(fd), "uncached_reads_are_waited_for",
			NEEDS_EVICTION))
		return weft_close(fd);
	before = stats();
	/* A fast disk, or a long pause of this thread, may let the kernel have
	 * the pages at the end of the attempt that requests them. */
	for (int i = 0; i < 100 && stats().ops == before.ops; i++) {
		sync_and_evict(fd);
		ck_assert_int_eq(
			weft_pread_all(fd, got, FILE_BYTES, 0, &done), 0);
		ck_assert_uint_eq(done, FILE_BYTES);
		ck_assert_mem_eq(got, expected, FILE_BYTES);
		memset(got, 0, FILE_BYTES);
	}
	ck_assert_uint_gt(stats().ops, before.ops);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

IO_TEST(direct_reads_go_through_the_ring)
{
	struct weft_worker_stats before;
	int fd = file_new(0);
	void *aligned = aligned_alloc(4096, 8192);

	fsync(fd);
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_DIRECT), 0);
	before = stats();
	ck_assert_int_eq(weft_pread(fd, aligned, 8192, 4096), 8192);
	ck_assert_mem_eq(aligned, expected + 4096, 8192);
	ck_assert_int_eq(weft_pwrite(fd, aligned, 8192, 0), 8192);
	ck_assert_uint_eq(stats().ops, before.ops + 2);
	ck_assert_uint_eq(stats().ops_ready, before.ops_ready);
	free(aligned);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

IO_TEST(position_moves_with_read_and_write)
{
	struct iovec iov[2] = { { got, 10 }, { got + 10, 20 } };
	int fd = file_new(0);

	ck_assert_int_eq(weft_read(fd, got, 100), 100);
	ck_assert_mem_eq(got, expected, 100);
	ck_assert_int_eq(weft_readv(fd, iov, 2), 30);
	ck_assert_mem_eq(got, expected + 100, 30);
	ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 130);
	ck_assert_int_eq(weft_pread(fd, got, 10, 50), 10);
	ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 130);
	ck_assert_int_eq(weft_write(fd, "new", 3), 3);
	iov[0] = (struct iovec){ (char[]){ "ab" }, 2 };
	iov[1] = (struct iovec){ (char[]){ "c" }, 1 };
	ck_assert_int_eq(weft_writev(fd, iov, 2), 3);
	ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 136);
	ck_assert_int_eq(weft_pread(fd, got, 6, 130), 6);
	ck_assert_mem_eq(got, "newabc", 6);
	/* The position also moves when the ring is used. */
	sync_and_evict(fd);
	ck_assert_int_eq(weft_read(fd, got, 10), 10);
	ck_assert_mem_eq(got, expected + 136, 10);
	ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 146);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

IO_TEST(end_of_file_is_0_and_nothing_else_is)
{
	int fd = file_new(0);
	size_t done = 0;

	ck_assert_int_eq(weft_pread(fd, got, 10, FILE_BYTES), 0);
	ck_assert_int_eq(weft_pread(fd, got, 10, FILE_BYTES - 4), 4);
	ck_assert_int_eq(weft_pread(fd, got, 10, (off_t)1 << 40), 0);
	ck_assert_int_eq(weft_pread_all(fd, got, 10, FILE_BYTES - 4, &done),
			 -ENODATA);
	ck_assert_uint_eq(done, 4);
	ck_assert_int_eq(weft_read_all(fd, got, FILE_BYTES, &done), 0);
	ck_assert_int_eq(weft_read(fd, got, 1), 0);
	/* Half of the file is cached: a read never returns 0 in the middle. */
	sync_and_evict(fd);
	ck_assert_int_eq(weft_pread(fd, got, 4096, 0), 4096);
	for (off_t at = 0; at < FILE_BYTES; at += 65536)
		ck_assert_int_gt(weft_pread(fd, got, 65536, at), 0);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* More than the kernel moves in one call makes a short transfer. */
IO_TEST(huge_lengths_are_cut)
{
	int fd = file_new(0);
	size_t bytes = (size_t)5 << 30;
	char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(room, MAP_FAILED);
	/* Of an overlay's file less is looked for at once. */
	ck_assert_int_gt(weft_pread(fd, room, bytes, 0),
			 is_on_overlay(fd) ? 0 : FILE_BYTES - 1);
	sync_and_evict(fd);
	ck_assert_int_gt(weft_pread(fd, room, bytes, 0), 0);
	ck_assert_int_eq(munmap(room, bytes), 0);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* ---- Writing ---------------------------------------------------------- */

IO_TEST(what_is_written_is_read)
{
	int fd = file_new(0);
	size_t done = 0;

	for (int i = 0; i < FILE_BYTES; i++)
		expected[i] = (char)~expected[i];
	ck_assert_int_eq(weft_pwrite_all(fd, expected, FILE_BYTES, 0, &done),
			 0);
	ck_assert_uint_eq(done, FILE_BYTES);
	ck_assert_int_eq(weft_fdatasync(fd), 0);
	ck_assert_int_eq(weft_fsync(fd), 0);
	ck_assert_int_eq(weft_pread_all(fd, got, FILE_BYTES, 0, NULL), 0);
	ck_assert_mem_eq(got, expected, FILE_BYTES);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

static int64_t fill_tmpfs(void *arg)
{
	const char *dir = arg;
	char path[128];
	size_t done = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/file", dir);
	fd = weft_open(path, O_CREAT | O_RDWR, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_write_all(fd, expected, FILE_BYTES, &done),
			 -ENOSPC);
	ck_assert_uint_eq(done, 64 << 10);
	ck_assert_int_eq(weft_pwrite(fd, expected, 10, 100 << 10), -ENOSPC);
	ck_assert_int_eq(weft_pread(fd, got, FILE_BYTES, 0), 64 << 10);
	return weft_close(fd);
}

START_TEST(full_disk_is_enospc_after_what_fitted)
{
	char dir[] = "/tmp/weft-tmpfs-XXXXXX";

	if (!test_needs(test_can(become_mount_owner) && become_mount_owner(),
			"full_disk_is_enospc_after_what_fitted", NEEDS_MOUNTS))
		return;
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(mount("weft", dir, "tmpfs", 0, "size=64k"), 0);
	io_run(fill_tmpfs, dir, _i ? 2 : 1);
	ck_assert_int_eq(umount(dir), 0);
	rmdir(dir);
}
END_TEST

IO_TEST(append_writes_at_the_end)
{
	int fd = file_new(O_APPEND);

	ck_assert_int_eq(weft_write(fd, "end", 3), 3);
	ck_assert_int_eq(weft_write(fd, "END", 3), 3);
	ck_assert_int_eq(weft_pread(fd, got, 10, FILE_BYTES), 6);
	ck_assert_mem_eq(got, "endEND", 6);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

IO_TEST(limit_of_file_size_is_efbig)
{
	int fd = file_new(0);
	size_t done = 0;

	signal(SIGXFSZ, SIG_IGN);
	(void)limit_set(RLIMIT_FSIZE, FILE_BYTES + 100);
	ck_assert_int_eq(weft_pwrite_all(fd, expected, 200, FILE_BYTES, &done),
			 -EFBIG);
	ck_assert_uint_eq(done, 100);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

IO_TEST(mode_of_opening_is_obeyed)
{
	int fd = weft_open("/proc/self/exe", O_RDONLY, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_write(fd, "x", 1), -EBADF);
	ck_assert_int_eq(weft_pwrite(fd, "x", 1, 0), -EBADF);
	ck_assert_int_eq(weft_close(fd), 0);
	fd = weft_open("/dev/null", O_WRONLY, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_read(fd, got, 1), -EBADF);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* A device has a position, no position, or accepts any position. */
IO_TEST(devices_are_read_and_written)
{
	int zero = weft_open("/dev/zero", O_RDWR, 0);
	int null = weft_open("/dev/null", O_RDWR, 0);

	memset(got, 1, 100);
	ck_assert_int_eq(weft_read(zero, got, 50), 50);
	ck_assert_int_eq(weft_pread(zero, got + 50, 50, 12345), 50);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(got[i], 0);
	ck_assert_int_eq(weft_write(null, got, 100), 100);
	ck_assert_int_eq(weft_read(null, got, 100), 0);
	close_both((int[]){ zero, null });
	return 0;
}

/* ---- Opening and looking at ---------------------------------------------- */

IO_TEST(opened_descriptor_is_closed_on_exec)
{
	int dir = weft_open("/", O_RDONLY | O_DIRECTORY, 0);
	int fd = weft_openat(dir, "proc/self/status", O_RDONLY, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(dir, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_gt(weft_read(fd, got, 100), 0);
	ck_assert_int_eq(weft_read(dir, got, 100), -EISDIR);
	close_both((int[]){ dir, fd });
	return 0;
}

IO_TEST(opening_fails_as_open_does)
{
	struct rlimit old;

	ck_assert_int_eq(weft_open("/no/such/file", O_RDONLY, 0), -ENOENT);
	ck_assert_int_eq(weft_open("/", O_WRONLY, 0), -EISDIR);
	ck_assert_int_eq(weft_open("/proc/self/exe/x", O_RDONLY, 0), -ENOTDIR);
	ck_assert_int_eq(weft_openat(9999, "x", O_RDONLY, 0), -EBADF);
	ck_assert_int_eq(weft_open("/proc/self/status", O_CREAT | O_EXCL, 0600),
			 -EEXIST);
	old = limit_set(RLIMIT_NOFILE, 3);
	ck_assert_int_eq(weft_open("/dev/null", O_RDONLY, 0), -EMFILE);
	limit_reset(RLIMIT_NOFILE, old);
	return 0;
}

/* Neither "..", nor a link, nor an absolute path leads out of a directory,
 * whether or not the names are in the kernel's cache. */
static void open_beneath(int dir, uint64_t flags)
{
	static const struct {
		const char *path;
		int error;
	} ways[] = {
		{ "in", 0 },		  { "sub/../in", 0 },
		{ "to-in", 0 },		  { "none", -ENOENT },
		{ "in/none", -ENOTDIR },  { "..", -EXDEV },
		{ "../weft-none", -EXDEV }, { "sub/../../x", -EXDEV },
		{ "/etc/passwd", -EXDEV }, { "to-etc/passwd", -EXDEV },
		{ "loop", -ELOOP },
	};
	struct open_how how = { .flags = flags, .resolve = RESOLVE_BENEATH };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int r = weft_openat2(dir, ways[i].path, &how, sizeof(how));

		ck_assert_msg(r < 0 ? r == ways[i].error : ways[i].error == 0,
			      "%s: %d", ways[i].path, r);
		if (r < 0)
			continue;
		ck_assert_int_eq(fcntl(r, F_GETFD), FD_CLOEXEC);
		ck_assert_int_eq(weft_read(r, got, 10), 2);
		ck_assert_int_eq(weft_close(r), 0);
	}
}

IO_TEST(openat2_stays_beneath)
{
	char path[] = "/var/tmp/weft-beneath-XXXXXX";
	int dir, fd;

	ck_assert_ptr_nonnull(mkdtemp(path));
	dir = weft_open(path, O_PATH | O_DIRECTORY, 0);
	ck_assert_int_eq(mkdirat(dir, "sub", 0700), 0);
	ck_assert_int_eq(symlinkat("in", dir, "to-in"), 0);
	ck_assert_int_eq(symlinkat("/etc", dir, "to-etc"), 0);
	ck_assert_int_eq(symlinkat("loop", dir, "loop"), 0);
	fd = weft_openat(dir, "in", O_CREAT | O_WRONLY, 0600);
	ck_assert_int_eq(weft_write(fd, "in", 2), 2);
	ck_assert_int_eq(weft_close(fd), 0);
	open_beneath(dir, O_RDONLY | O_NONBLOCK);
	open_beneath(dir, O_RDONLY);
	open_beneath(dir, O_RDONLY | O_NONBLOCK);
	unlinkat(dir, "in", 0);
	unlinkat(dir, "to-in", 0);
	unlinkat(dir, "to-etc", 0);
	unlinkat(dir, "loop", 0);
	unlinkat(dir, "sub", AT_REMOVEDIR);
	ck_assert_int_eq(weft_close(dir), 0);
	ck_assert_int_eq(rmdir(path), 0);
	return 0;
}

IO_TEST(openat2_is_strict)
{
	struct {
		struct open_how how;
		uint64_t more;
	} newer = { { .flags = O_RDONLY }, 0 };
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK };
	struct weft_worker_stats before;
	int fd;

	fd = weft_openat2(AT_FDCWD, "/dev/null", &how, sizeof(how));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	/* A name in the kernel's cache is opened without a request. */
	before = stats();
	fd = weft_openat2(AT_FDCWD, "/dev/null", &how, sizeof(how));
	ck_assert_uint_eq(stats().ops, before.ops);
	ck_assert_int_eq(weft_close(fd), 0);
	fd = weft_openat2(AT_FDCWD, "/dev/null", &newer.how, sizeof(newer));
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	newer.more = 1;
	ck_assert_int_eq(weft_openat2(AT_FDCWD, "/", &newer.how,
				      sizeof(newer)),
			 -E2BIG);
	/* The call rejects these sizes without reading the struct. */
	ck_assert_int_eq(weft_openat2(AT_FDCWD, "/", &how, SIZE_MAX), -E2BIG);
	ck_assert_int_eq(weft_openat2(AT_FDCWD, "/", &how, 8), -EINVAL);
	ck_assert_int_eq(weft_openat2(AT_FDCWD, "/", NULL, sizeof(how)),
			 -EFAULT);
	ck_assert_int_eq(weft_openat2(AT_FDCWD, NULL, &how, sizeof(how)),
			 -EFAULT);
	ck_assert_int_eq(weft_openat2(9999, "x", &how, sizeof(how)), -EBADF);
	for (int i = 0; i < 2; i++) {
		how = (struct open_how){ .flags = i ? O_NONBLOCK : 0,
					 .mode = 0600 };
		ck_assert_int_eq(weft_openat2(AT_FDCWD, "/", &how,
					      sizeof(how)),
				 -EINVAL);
		how.mode = 0;
		how.resolve = (uint64_t)1 << 60;
		ck_assert_int_eq(weft_openat2(AT_FDCWD, "/", &how,
					      sizeof(how)),
				 -EINVAL);
	}
	return 0;
}

static int64_t open_other_end(void *arg)
{
	int fd;

	weft_sleep(WEFT_MS(5));
	fd = weft_open(arg ? *(char **)arg : NULL, O_WRONLY, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_write(fd, "hello", 5), 5);
	return weft_close(fd);
}

/* As with open(2), each end waits until the other one is opened. */
IO_TEST(fifo_waits_for_its_other_end)
{
	char path[64], *pointer = path;
	int fd;

	snprintf(path, sizeof(path), "/tmp/weft-fifo2-%d", (int)getpid());
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(weft_open(path, O_WRONLY | O_NONBLOCK, 0), -ENXIO);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, open_other_end, pointer), 0);
		fd = weft_open(path, O_RDONLY, 0);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(weft_read_all(fd, got, 5, NULL), 0);
		ck_assert_int_eq(weft_read(fd, got, 5), 0);
		ck_assert_int_eq(weft_close(fd), 0);
	}
	fd = weft_open(path, O_RDONLY | O_NONBLOCK, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	unlink(path);
	return 0;
}

IO_TEST(stat_tells_what_stat_tells)
{
	static const char *const paths[] = { "/proc/self/exe", "/", "/dev/null",
					     "/etc/passwd" };
	struct stat mine, theirs;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		ck_assert_int_eq(weft_stat(paths[i], &mine), 0);
		ck_assert_int_eq(stat(paths[i], &theirs), 0);
		ck_assert_uint_eq(mine.st_dev, theirs.st_dev);
		ck_assert_uint_eq(mine.st_ino, theirs.st_ino);
		ck_assert_uint_eq(mine.st_mode, theirs.st_mode);
		ck_assert_uint_eq(mine.st_nlink, theirs.st_nlink);
		ck_assert_uint_eq(mine.st_uid, theirs.st_uid);
		ck_assert_uint_eq(mine.st_gid, theirs.st_gid);
		ck_assert_uint_eq(mine.st_rdev, theirs.st_rdev);
		ck_assert_int_eq(mine.st_size, theirs.st_size);
		ck_assert_int_eq(mine.st_blksize, theirs.st_blksize);
		ck_assert_int_eq(mine.st_blocks, theirs.st_blocks);
		ck_assert_int_eq(mine.st_mtim.tv_sec, theirs.st_mtim.tv_sec);
		ck_assert_int_eq(mine.st_mtim.tv_nsec, theirs.st_mtim.tv_nsec);
		ck_assert_int_eq(mine.st_ctim.tv_nsec, theirs.st_ctim.tv_nsec);
	}
	return 0;
}

IO_TEST(fstat_looks_through_the_descriptor)
{
	struct stat st = { .st_size = 77 };
	int fd = file_new(0), fds[2];

	ck_assert_int_eq(weft_fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, FILE_BYTES);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_uint_eq(st.st_nlink, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	st.st_size = 77;
	ck_assert_int_eq(weft_fstat(fd, &st), -EBADF);
	ck_assert_int_eq(weft_stat("/no/such/file", &st), -ENOENT);
	ck_assert_int_eq(st.st_size, 77);
	socket_pair(fds);
	ck_assert_int_eq(weft_fstat(fds[0], &st), 0);
	ck_assert(S_ISSOCK(st.st_mode));
	ck_assert_int_eq(weft_fsync(fds[0]), -EINVAL);
	close_both(fds);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/file");
	TCase *reading = tcase_create("reading");
	TCase *writing = tcase_create("writing");
	TCase *opening = tcase_create("opening");

	if (test_needs(test_is_unmasked(WEFT__FEATURE_RWF_NOWAIT),
		       "cached_reads_do_not_visit_the_ring", "rwf_nowait"))
		io_add_test(reading, cached_reads_do_not_visit_the_ring);
	io_add_test(reading, uncached_reads_are_waited_for);
	io_add_test(reading, direct_reads_go_through_the_ring);
	io_add_test(reading, position_moves_with_read_and_write);
	io_add_test(reading, end_of_file_is_0_and_nothing_else_is);
	io_add_test(reading, huge_lengths_are_cut);
	io_add_test(writing, what_is_written_is_read);
	tcase_add_loop_test(writing, full_disk_is_enospc_after_what_fitted, 0,
			    2);
	io_add_test(writing, append_writes_at_the_end);
	io_add_test(writing, limit_of_file_size_is_efbig);
	io_add_test(writing, mode_of_opening_is_obeyed);
	io_add_test(writing, devices_are_read_and_written);
	io_add_test(opening, opened_descriptor_is_closed_on_exec);
	io_add_test(opening, opening_fails_as_open_does);
	io_add_test(opening, openat2_stays_beneath);
	io_add_test(opening, openat2_is_strict);
	io_add_test(opening, fifo_waits_for_its_other_end);
	io_add_test(opening, stat_tells_what_stat_tells);
	io_add_test(opening, fstat_looks_through_the_descriptor);
	suite_add_tcase(suite, reading);
	suite_add_tcase(suite, writing);
	suite_add_tcase(suite, opening);
	return io_tests_run(suite);
}

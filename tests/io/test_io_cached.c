/* SPDX-License-Identifier: MIT */
/*
 * Files that are in memory: opening, the status, reading and closing make no
 * request, on a disk's file system, on tmpfs and on an overlay.  All else is a
 * request: data on the disk, and what may wait for more than a disk.  The
 * results are those of the plain calls in either case.
 *
 * An overlay is mounted where that is allowed; a place that a machine does not
 * have is left out by name.
 */
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "io/stored.h"
#include "tests/support/child_kit.h"
#include "tests/support/errno_now.h"
#include "tests/support/features.h"
#include "tests/support/page_cache.h"

enum { FILE_BYTES = 32 * PAGE + 100 };

static char expected[FILE_BYTES], got[FILE_BYTES + 1];

static uint64_t ops(void)
{
	struct weft_stats all;

	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &all), 0);
	return all.total.ops;
}

/* ---- Places ----------------------------------------------------------- */

static void write_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	for (int i = 0; i < FILE_BYTES; i++)
		expected[i] = (char)(i * 7 + i / PAGE);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, expected, FILE_BYTES), FILE_BYTES);
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
}

struct place {
	char dir[64]; /* with a file named "file"; "" if there is no place */
	char base[64];
	bool is_overlay;
};

static void path_in(const struct place *place, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", place->dir, name);
}

static bool place_is_local(const struct place *place)
{
	struct statx status;
	char path[128];

	path_in(place, "file", path);
	return syscall(SYS_statx, AT_FDCWD, path, 0, STATX_TYPE, &status) ==
		       0 &&
	       weft__look_is_local(&status);
}

static void place_make(struct place *place, const char *base)
{
	char path[128];

	snprintf(place->base, sizeof(place->base), "%s/weft-cached-XXXXXX",
		 base);
	place->dir[0] = '\0';
	place->is_overlay = false;
	if (!mkdtemp(place->base))
		return;
	snprintf(place->dir, sizeof(place->dir), "%s", place->base);
	path_in(place, "file", path);
	write_file(path);
}

static bool mount_overlay(const struct place *place)
{
	char options[256];

	snprintf(options, sizeof(options), "lowerdir=%s/low,upperdir=%s/up,"
					   "workdir=%s/work",
		 place->base, place->base, place->base);
	return become_mount_owner() &&
	       mount("overlay", place->dir, "overlay", 0, options) == 0;
}

static bool is_in_memory(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is = fd >= 0 && is_on_tmpfs(fd);

	close(fd);
	return is;
}

/* The file is one of the lower layer, which is on a disk. */
static void place_make_overlay(struct place *place)
{
	static const char *const parts[] = { "low", "up", "work", "all" };
	char path[128];

	place_make(place, "/var/tmp");
	path_in(place, "file", path);
	unlink(path);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		path_in(place, parts[i], path);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	}
	path_in(place, "low/file", path);
	write_file(path);
	snprintf(place->dir, sizeof(place->dir), "%.58s/all", place->base);
	place->is_overlay = !is_in_memory(place->base) && mount_overlay(place);
	if (!place->is_overlay)
		place->dir[0] = '\0';
}

static void place_end(struct place *place)
{
	char command[256];

	/* The kernel may still be closing a file. */
	if (place->is_overlay)
		umount2(place->dir, MNT_DETACH);
	/* An overlay closes a directory of its own to all but root. */
	snprintf(command, sizeof(command), "cd '%s' && chmod -R u+rwx . && "
					   "rm -rf '%s'",
		 place->base, place->base);
	ck_assert_int_eq(system(command), 0); /* NOLINT: a name of ours */
}

static const char *const names[] = { "a disk", "tmpfs", "an overlay" };

enum { PLACES = sizeof(names) / sizeof(names[0]) };

/* Runs a test's task in one place; _i: the place, and one or two workers. */
static void run_at(int i, weft_fn fn, const char *test)
{
	struct place place;

	if (i / 2 == 2)
		place_make_overlay(&place);
	else
		place_make(&place, i / 2 ? "/dev/shm" : "/var/tmp");
	if (test_needs(place.dir[0] && place_is_local(&place), test,
		       names[i / 2]))
		io_run(fn, &place, i % 2 ? 2 : 1);
	place_end(&place);
}

#define PLACE_TEST(name)                                 \
	static int64_t name##_task(void *arg);           \
	START_TEST(name)                                 \
	{                                                \
		run_at(_i, name##_task, #name);          \
	}                                                \
	END_TEST                                         \
	static int64_t name##_task(void *arg)

#define place_add_test(tcase, name) \
	tcase_add_loop_test(tcase, name, 0, 2 * PLACES)

/* ---- Calls ------------------------------------------------------------ */

static int by_open(const char *path)
{
	return weft_open(path, O_RDONLY, 0);
}

static int by_openat2(const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK };

	return weft_openat2(AT_FDCWD, path, &how, sizeof(how));
}

static int (*const opens[])(const char *path) = { by_open, by_openat2 };

static void expect_same_status(const struct stat *mine,
			       const struct stat *theirs)
{
	ck_assert_uint_eq(mine->st_dev, theirs->st_dev);
	ck_assert_uint_eq(mine->st_ino, theirs->st_ino);
	ck_assert_uint_eq(mine->st_mode, theirs->st_mode);
	ck_assert_uint_eq(mine->st_nlink, theirs->st_nlink);
	ck_assert_uint_eq(mine->st_uid, theirs->st_uid);
	ck_assert_uint_eq(mine->st_gid, theirs->st_gid);
	ck_assert_uint_eq(mine->st_rdev, theirs->st_rdev);
	ck_assert_int_eq(mine->st_size, theirs->st_size);
	ck_assert_int_eq(mine->st_blksize, theirs->st_blksize);
	ck_assert_int_eq(mine->st_blocks, theirs->st_blocks);
	ck_assert_mem_eq(&mine->st_atim, &theirs->st_atim,
			 sizeof(mine->st_atim));
	ck_assert_mem_eq(&mine->st_mtim, &theirs->st_mtim,
			 sizeof(mine->st_mtim));
	ck_assert_mem_eq(&mine->st_ctim, &theirs->st_ctim,
			 sizeof(mine->st_ctim));
}

/* The plain calls, before others: what they need is in memory then. */
static void warm(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, got, FILE_BYTES + 1), FILE_BYTES);
	close(fd);
}

/* ---- In memory -------------------------------------------------------- */

PLACE_TEST(file_in_memory_takes_no_request)
{
	struct stat mine, theirs;
	char path[128];
	uint64_t before;

	path_in(arg, "file", path);
	warm(path);
	before = ops();
	for (int i = 0; i < 20; i++) {
		int fd = opens[i % 2](path);

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(weft_pread(fd, got, 100, 3 * PAGE - 50), 100);
		ck_assert_mem_eq(got, expected + 3 * PAGE - 50, 100);
		ck_assert_int_eq(weft_read_all(fd, got, FILE_BYTES, NULL), 0);
		ck_assert_mem_eq(got, expected, FILE_BYTES);
		ck_assert_int_eq(weft_read(fd, got, 1), 0);
		ck_assert_int_eq(weft_fstat(fd, &mine), 0);
		ck_assert_int_eq(fstat(fd, &theirs), 0);
		expect_same_status(&mine, &theirs);
		ck_assert_int_eq(weft_close(fd), 0);
		ck_assert_int_eq(weft_stat(path, &mine), 0);
		expect_same_status(&mine, &theirs);
	}
	ck_assert_uint_eq(ops(), before);
	return 0;
}

/* So weft_sendfile() needs no copy.  Of a disk's file system another call
 * tells. */
PLACE_TEST(file_in_memory_is_found_there)
{
	const struct place *place = arg;
	char path[128];
	bool is_stored;
	int fd;

	path_in(place, "file", path);
	warm(path);
	fd = by_open(path);
	ck_assert_int_ge(fd, 0);
	is_stored = is_on_tmpfs(fd) || is_on_overlay(fd);
	ck_assert(weft__stored_has(fd, 0, FILE_BYTES) == is_stored);
	ck_assert(weft__stored_has(fd, 10, PAGE) == is_stored);
	if (place->is_overlay) {
		evict(fd);
		wait_until(!weft__stored_has(fd, 0, FILE_BYTES));
	}
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* Tmpfs keeps no such names, and is asked by a request. */
PLACE_TEST(name_that_cannot_be_found_takes_no_request)
{
	const struct place *place = arg;
	struct stat status;
	char path[128];
	uint64_t before;

	if (is_in_memory(place->dir))
		return 0;
	path_in(place, "none", path);
	ck_assert_int_eq(stat(path, &status), -1);
	before = ops();
	ck_assert_int_eq(weft_stat(path, &status), -ENOENT);
	ck_assert_int_eq(by_open(path), -ENOENT);
	ck_assert_int_eq(by_openat2(path), -ENOENT);
	ck_assert_uint_eq(ops(), before);
	return 0;
}

/* ---- Not in memory ---------------------------------------------------- */

/* The part that is in memory is read, then a request reads the rest. */
PLACE_TEST(data_on_the_disk_is_a_request)
{
	const struct place *place = arg;
	char path[128];
	uint64_t before;
	ssize_t n;
	int fd;

	if (!place->is_overlay)
		return 0; /* test_io_file; and tmpfs has no disk */
	path_in(place, "file", path);
	fd = by_open(path);
	ck_assert_int_ge(fd, 0);
	evict(fd);
	before = ops();
	ck_assert_int_eq(weft_pread(fd, got, 100, PAGE), 100);
	ck_assert_mem_eq(got, expected + PAGE, 100);
	ck_assert_uint_gt(ops(), before);
	before = ops();
	n = weft_pread(fd, got, FILE_BYTES, PAGE + 10);
	ck_assert_int_ge(n, PAGE - 10);
	ck_assert_mem_eq(got, expected + PAGE + 10, (size_t)n);
	ck_assert_int_eq(weft_pread_all(fd, got, FILE_BYTES, 0, NULL), 0);
	ck_assert_mem_eq(got, expected, FILE_BYTES);
	ck_assert_uint_gt(ops(), before);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* Its length must stay as it is. */
PLACE_TEST(direct_read_of_the_last_page_gives_its_rest)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	char path[128];
	int fd;

	path_in(arg, "file", path);
	warm(path);
	fd = by_open(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_pread(fd, got, 1, 0), 1);
	if (test_needs(fcntl(fd, F_SETFL, O_DIRECT) == 0, __func__, "O_DIRECT"))
		ck_assert_int_eq(weft_pread(fd, page, PAGE, 32 * PAGE), 100);
	return weft_close(fd);
}

/* A file system of the kernel's may do anything when a file is opened. */
IO_TEST(what_is_not_local_is_opened_by_a_request)
{
	struct stat mine, theirs;
	uint64_t before;
	int fd;

	ck_assert_int_eq(stat("/proc/self/status", &theirs), 0);
	before = ops();
	fd = by_open("/proc/self/status");
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(ops(), before + 1);
	ck_assert_int_eq(weft_stat("/proc/self/status", &mine), 0);
	ck_assert_uint_eq(ops(), before + 2);
	ck_assert_uint_eq(mine.st_ino, theirs.st_ino);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* A number whose kind is wrong: what it belongs to now may wait for ever. */
PLACE_TEST(wrong_kind_holds_no_worker)
{
	char path[128];
	ssize_t r = 0;
	int fd;

	path_in(arg, "fifo", path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	for (int kind = WEFT__FD_FILE; kind <= WEFT__FD_STORED; kind++) {
		struct weft__fd *entry;

		ck_assert_int_eq(
			weft__fd_get(&weft__reactor(weft_runtime_self())->fds,
				     fd, &entry),
			0);
		weft__fd_set_kind(entry, kind);
		WEFT_WITHIN(WEFT_MS(2))
			r = weft_read(fd, got, 1);
		ck_assert_int_eq(r, -ETIMEDOUT);
	}
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

static size_t resident_of(int fd, off_t offset, size_t bytes)
{
	return weft__look_resident(fd, offset, bytes, FILE_BYTES);
}

START_TEST(pages_in_the_cache_are_counted_from_the_offset)
{
	struct place place;
	char path[128];
	int fd;

	place_make(&place, "/var/tmp");
	path_in(&place, "file", path);
	warm(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(resident_of(fd, 0, FILE_BYTES), FILE_BYTES);
	ck_assert_uint_eq(resident_of(fd, 0, SIZE_MAX), FILE_BYTES);
	ck_assert_uint_eq(resident_of(fd, 5, 7), 7);
	ck_assert_uint_eq(resident_of(fd, PAGE - 1, 2), 2);
	ck_assert_uint_eq(resident_of(fd, FILE_BYTES - 3, 10), 3);
	ck_assert_uint_eq(resident_of(fd, FILE_BYTES, 1), 0);
	ck_assert_uint_eq(resident_of(fd, -1, 1), 0);
	ck_assert_uint_eq(resident_of(-1, 0, 1), 0);
	if (!is_on_tmpfs(fd)) {
		evict(fd);
		ck_assert_uint_eq(resident_of(fd, 0, FILE_BYTES), 0);
		ck_assert_int_eq(pread(fd, got, 2 * PAGE, 4 * PAGE), 2 * PAGE);
		ck_assert_uint_eq(resident_of(fd, 4 * PAGE + 10, 6 * PAGE),
				  2 * PAGE - 10);
		ck_assert_uint_eq(resident_of(fd, 3 * PAGE, 6 * PAGE), 0);
	}
	close(fd);
	place_end(&place);
}
END_TEST

static int64_t look_as_other(void *arg)
{
	enum { OTHER = 65534 };

	NEED(setresuid(OTHER, OTHER, OTHER) == 0);
	NEED(resident_of(*(int *)arg, 0, 10) == 0);
	return 0;
}

/* Of a file of others the kernel claims that all pages are in the cache. */
START_TEST(nothing_is_known_of_files_of_others)
{
	struct place place;
	char path[128];
	int fd;

	if (!test_needs(geteuid() == 0, "nothing_is_known_of_files_of_others",
			"root"))
		return;
	place_make(&place, "/var/tmp");
	path_in(&place, "file", path);
	warm(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(resident_of(fd, 0, 10), 10);
	child_run(look_as_other, &fd);
	close(fd);
	place_end(&place);
}
END_TEST

/* ---- As the plain calls ----------------------------------------------- */

PLACE_TEST(descriptor_has_the_flags_that_open_gives)
{
	static const int flags[] = {
		O_RDONLY,  O_RDWR,	     O_WRONLY | O_APPEND,
		O_NOATIME, O_SYNC | O_RDWR,  O_NONBLOCK,
		O_NOFOLLOW, O_DSYNC | O_RDWR, O_NOCTTY | O_NONBLOCK | O_RDWR,
		O_DIRECT,  O_CREAT | O_RDWR, O_PATH,
	};
	char path[128];

	path_in(arg, "file", path);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		int theirs = open(path, flags[i] | O_CLOEXEC, 0600);
		int mine = weft_open(path, flags[i], 0600);

		if (theirs < 0) { /* O_DIRECT */
			ck_assert_int_eq(mine, -EINVAL);
			continue;
		}
		ck_assert_int_ge(mine, 0);
		ck_assert_msg(fcntl(mine, F_GETFL) == fcntl(theirs, F_GETFL),
			      "flags %#o: %#o", flags[i],
			      fcntl(mine, F_GETFL));
		ck_assert_int_eq(fcntl(mine, F_GETFD), FD_CLOEXEC);
		close(theirs);
		ck_assert_int_eq(weft_close(mine), 0);
	}
	return 0;
}

static void expect_status_of(const char *path)
{
	struct stat mine, theirs;
	int r = weft_stat(path, &mine);

	if (stat(path, &theirs) < 0)
		ck_assert_int_eq(r, -errno_now());
	else
		ck_assert_int_eq(r, 0);
	if (r == 0)
		expect_same_status(&mine, &theirs);
}

PLACE_TEST(status_is_that_of_stat)
{
	const struct place *place = arg;
	char path[128], link[128];

	path_in(place, "fifo", path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	expect_status_of(path);
	path_in(place, "link", link);
	ck_assert_int_eq(symlink("file", link), 0);
	expect_status_of(link);
	path_in(place, "dangling", link);
	ck_assert_int_eq(symlink("nothing", link), 0);
	expect_status_of(link);
	path_in(place, "loop", link);
	ck_assert_int_eq(symlink("loop", link), 0);
	expect_status_of(link);
	path_in(place, "file/under", path);
	expect_status_of(path);
	expect_status_of(place->dir);
	expect_status_of("");
	expect_status_of("/proc/self/exe");
	path_in(place, "file", path);
	expect_status_of(path);
	ck_assert_int_eq(truncate(path, 10), 0);
	expect_status_of(path);
	ck_assert_int_eq(unlink(path), 0);
	expect_status_of(path);
	return 0;
}

/* The look takes a descriptor, and stat(2) does not. */
PLACE_TEST(status_needs_no_descriptor)
{
	struct rlimit old;
	struct stat mine, theirs;
	char path[128];
	int r;

	path_in(arg, "file", path);
	ck_assert_int_eq(stat(path, &theirs), 0);
	old = limit_set(RLIMIT_NOFILE, 0);
	r = weft_stat(path, &mine);
	limit_reset(RLIMIT_NOFILE, old);
	ck_assert_int_eq(r, 0);
	expect_same_status(&mine, &theirs);
	return 0;
}

/* Nothing that is known of the file outlives a change by others. */
PLACE_TEST(growth_is_read)
{
	char path[128];
	int fd, other;

	path_in(arg, "new", path);
	other = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_ge(other, 0);
	fd = by_open(path);
	ck_assert_int_ge(fd, 0);
	for (int i = 0; i < 50; i++) {
		ck_assert_int_eq(weft_read(fd, got, 10), 0);
		ck_assert_int_eq(write(other, "abc", 3), 3);
		ck_assert_int_eq(weft_read(fd, got, 10), 3);
		ck_assert_mem_eq(got, "abc", 3);
	}
	close(other);
	unlink(path);
	ck_assert_int_eq(weft_pread(fd, got, 10, 147), 3);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/cached");
	TCase *memory = tcase_create("memory");
	TCase *disk = tcase_create("disk");
	TCase *same = tcase_create("same");

	if (test_needs(test_is_unmasked(WEFT__FEATURE_RWF_NOWAIT),
		       "file_in_memory_takes_no_request", "rwf_nowait"))
		place_add_test(memory, file_in_memory_takes_no_request);
	place_add_test(memory, file_in_memory_is_found_there);
	place_add_test(memory, name_that_cannot_be_found_takes_no_request);
	place_add_test(disk, data_on_the_disk_is_a_request);
	place_add_test(disk, direct_read_of_the_last_page_gives_its_rest);
	io_add_test(disk, what_is_not_local_is_opened_by_a_request);
	place_add_test(disk, wrong_kind_holds_no_worker);
	tcase_add_test(disk, pages_in_the_cache_are_counted_from_the_offset);
	tcase_add_test(disk, nothing_is_known_of_files_of_others);
	place_add_test(same, descriptor_has_the_flags_that_open_gives);
	place_add_test(same, status_is_that_of_stat);
	place_add_test(same, status_needs_no_descriptor);
	place_add_test(same, growth_is_read);
	suite_add_tcase(suite, memory);
	suite_add_tcase(suite, disk);
	suite_add_tcase(suite, same);
	return io_tests_run(suite);
}

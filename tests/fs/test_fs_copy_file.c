/* SPDX-License-Identifier: MIT */
/*
 * weft_copy_file(): what the copy has, what is refused, and what is left when
 * it ends early: the whole file under its name, or nothing.
 */
#include <limits.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "fs/copy_bytes.h"
#include "tests/support/child_kit.h"
#include "tests/support/copied_kit.h"
#include "tests/support/errno_now.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

static int copy(const char *from, const char *to, uint32_t flags)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = flags;
	return weft_copy_file(from, to, &opts, NULL);
}

/* Nothing but the copies has been left, whatever happened. */
static void expect_names(unsigned count)
{
	ck_assert_uint_eq(copied_count_names(".", ""), count);
}

static struct stat status_of(const char *path)
{
	struct stat status;

	ck_assert_int_eq(lstat(path, &status), 0);
	return status;
}

static size_t text_of(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t all = 0;
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	while ((n = read(fd, text + all, bytes - 1 - all)) > 0)
		all += (size_t)n;
	text[all] = '\0';
	close(fd);
	return all;
}

static void expect_same(const char *a, const char *b)
{
	static char left[10 << 20], right[10 << 20];
	size_t n = text_of(a, left, sizeof(left));

	ck_assert_uint_eq(text_of(b, right, sizeof(right)), n);
	ck_assert_int_eq(memcmp(left, right, n), 0);
}

/* ---- Contents ---------------------------------------------------------- */

IO_TEST(copy_has_the_contents)
{
	const size_t sizes[] = {
		0, 1, 4096, 128 << 10, (128 << 10) + 1, (9 << 20) + 7
	};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t bytes = 99;

		copied_file(AT_FDCWD, "from", sizes[i], i);
		ck_assert_int_eq(weft_copy_file("from", "to", NULL, &bytes), 0);
		ck_assert_uint_eq(bytes, sizes[i]);
		expect_same("from", "to");
		ck_assert_uint_eq(status_of("to").st_mode, S_IFREG | 0644);
		expect_names(2);
		ck_assert_int_eq(unlink("to"), 0);
	}
	return 0;
}

/* Their size is 0, or a page. */
IO_TEST(file_without_a_size_is_copied_to_its_end)
{
	const char *const paths[] = { "/proc/filesystems", "/proc/version",
				      "/sys/devices/system/cpu/online" };
	char text[8192];

	for (unsigned i = 0; i < 3; i++) {
		if (access(paths[i], R_OK) < 0)
			continue;
		ck_assert_int_eq(copy(paths[i], "to", WEFT_COPY_OVERWRITE), 0);
		expect_same(paths[i], "to");
	}
	ck_assert_int_eq(copy("/proc/self/status", "to", WEFT_COPY_OVERWRITE),
			 0);
	text_of("to", text, sizeof(text));
	ck_assert_int_eq(strncmp(text, "Name:", 5), 0);
	ck_assert_ptr_nonnull(strstr(text, "nonvoluntary_ctxt_switches"));
	expect_names(1);
	return 0;
}

IO_TEST(holes_stay_holes)
{
	int fd = open("from", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	uint64_t bytes;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, "data", 4, 1 << 20), 4);
	ck_assert_int_eq(pwrite(fd, "more", 4, 3 << 20), 4);
	ck_assert_int_eq(ftruncate(fd, (8 << 20) + 1), 0);
	close(fd);
	ck_assert_int_eq(weft_copy_file("from", "to", NULL, &bytes), 0);
	expect_same("from", "to");
	ck_assert_int_eq(status_of("to").st_size, (8 << 20) + 1);
	/* Not every file system has holes. */
	if (status_of("from").st_blocks * 512 < 4 << 20)
		ck_assert_int_lt(status_of("to").st_blocks * 512, 4 << 20);
	return 0;
}

/* ---- Files that change ------------------------------------------------- */

static void steps_begin(struct weft__copy_bytes *bytes, size_t size,
			char *buffer)
{
	struct stat status;
	int from, to;

	copied_file(AT_FDCWD, "from", size, 5);
	from = open("from", O_RDONLY | O_CLOEXEC);
	to = open("to", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert(from >= 0 && to >= 0);
	ck_assert_int_eq(fstat(from, &status), 0);
	weft__copy_bytes_begin(bytes, from, to, &status, UINT64_MAX, buffer);
}

static void steps_end(struct weft__copy_bytes *bytes)
{
	int r;

	while ((r = weft__copy_bytes_step(bytes)) > 0)
		;
	ck_assert_int_eq(r, 0);
	close(bytes->from);
	close(bytes->to);
}

enum { STEPS_BYTES = 20 << 20, CUT_BYTES = (9 << 20) + 5 };

/* By the kernel, and by the buffer. */
START_TEST(file_that_shrinks_is_copied_as_far_as_it_goes)
{
	static char buffer[WEFT__COPY_BUFFER_BYTES];
	struct weft__copy_bytes bytes;

	steps_begin(&bytes, STEPS_BYTES, buffer);
	bytes.ranged = _i == 0;
	ck_assert_int_eq(weft__copy_bytes_step(&bytes), 1);
	ck_assert_int_eq(truncate("from", CUT_BYTES), 0);
	steps_end(&bytes);
	ck_assert_int_eq(status_of("to").st_size, CUT_BYTES);
	expect_same("from", "to");
}
END_TEST

/* One that grows as fast as it is copied would never end. */
START_TEST(file_that_grows_is_copied_as_it_was)
{
	static char buffer[WEFT__COPY_BUFFER_BYTES];
	struct weft__copy_bytes bytes;

	steps_begin(&bytes, CUT_BYTES, buffer);
	bytes.ranged = _i == 0;
	ck_assert_int_eq(weft__copy_bytes_step(&bytes), 1);
	ck_assert_int_eq(truncate("from", STEPS_BYTES), 0);
	steps_end(&bytes);
	ck_assert_int_eq(status_of("to").st_size, CUT_BYTES);
	ck_assert_int_eq(truncate("from", CUT_BYTES), 0);
	expect_same("from", "to");
}
END_TEST

/* Its last hole is gone, too. */
START_TEST(sparse_file_that_shrinks_gets_no_hole_in_its_place)
{
	static char buffer[WEFT__COPY_BUFFER_BYTES];
	struct weft__copy_bytes bytes;

	steps_begin(&bytes, 1 << 20, buffer);
	ck_assert_int_eq(truncate("from", STEPS_BYTES), 0);
	bytes.size = STEPS_BYTES;
	bytes.sparse = true;
	bytes.until = 0;
	ck_assert_int_eq(weft__copy_bytes_step(&bytes), 1);
	ck_assert_int_eq(truncate("from", 2 << 20), 0);
	steps_end(&bytes);
	ck_assert_int_eq(status_of("to").st_size, 2 << 20);
	expect_same("from", "to");
}
END_TEST

/* ---- Attributes, links, nodes ------------------------------------------ */

IO_TEST(attributes_are_copied_on_request)
{
	struct timespec times[] = { { 1000000000, 123456789 },
				    { 1100000000, 987654321 } };
	char value[16];

	copied_file(AT_FDCWD, "from", 100, 1);
	ck_assert_int_eq(chmod("from", 04751), 0);
	if (setxattr("from", "user.weft", "value", 5, 0) < 0)
		EXPECT(errno_now() == EOPNOTSUPP);
	ck_assert_int_eq(utimensat(AT_FDCWD, "from", times, 0), 0);
	ck_assert_int_eq(copy("from", "to", WEFT_COPY_ARCHIVE), 0);
	ck_assert_uint_eq(status_of("to").st_mode, S_IFREG | 04751);
	ck_assert_int_eq(status_of("to").st_mtim.tv_sec, 1100000000);
	ck_assert_int_eq(status_of("to").st_mtim.tv_nsec, 987654321);
	ck_assert_int_eq(status_of("to").st_atim.tv_nsec, 123456789);
	ck_assert_int_eq(getxattr("to", "user.weft", value, sizeof(value)),
			 getxattr("from", "user.weft", value, sizeof(value)));
	/* The rights alone, and nothing. */
	ck_assert_int_eq(copy("from", "mode", WEFT_COPY_MODE), 0);
	ck_assert_uint_eq(status_of("mode").st_mode, S_IFREG | 04751);
	ck_assert_int_ne(status_of("mode").st_mtim.tv_sec, 1100000000);
	ck_assert_int_eq(copy("from", "plain", 0), 0);
	ck_assert_uint_eq(status_of("plain").st_mode, S_IFREG | 0751);
	ck_assert_int_lt(getxattr("plain", "user.weft", value, sizeof(value)),
			 0);
	return 0;
}

IO_TEST(link_is_copied_or_followed)
{
	char target[20];

	copied_file(AT_FDCWD, "from", 100, 1);
	ck_assert_int_eq(symlink("from", "link"), 0);
	ck_assert_int_eq(symlink("gone", "to"), 0);
	ck_assert_int_eq(copy("link", "to", 0), -EEXIST);
	/* The link there is replaced, not what it refers to. */
	ck_assert_int_eq(copy("link", "to", WEFT_COPY_OVERWRITE), 0);
	ck_assert_int_eq(readlink("to", target, sizeof(target)), 4);
	ck_assert_int_eq(copy("link", "file", WEFT_COPY_FOLLOW), 0);
	ck_assert(S_ISREG(status_of("file").st_mode));
	expect_same("from", "file");
	expect_names(4);
	return 0;
}

IO_TEST(node_is_made_on_request)
{
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(chmod("fifo", 0622), 0);
	ck_assert_int_eq(copy("fifo", "to", 0), -EOPNOTSUPP);
	ck_assert_int_eq(copy("fifo", "to", WEFT_COPY_NODES | WEFT_COPY_MODE),
			 0);
	ck_assert_uint_eq(status_of("to").st_mode, S_IFIFO | 0622);
	ck_assert_int_eq(copy("/dev/null", "null", 0), -EOPNOTSUPP);
	if (geteuid() != 0) {
		ck_assert_int_eq(copy("/dev/null", "null", WEFT_COPY_NODES),
				 -EPERM);
		expect_names(2);
	} else if (copy("/dev/null", "null", WEFT_COPY_NODES) == 0) {
		ck_assert_uint_eq(status_of("null").st_rdev, makedev(1, 3));
	}
	return 0;
}

/* ---- Refusals ---------------------------------------------------------- */

IO_TEST(wrong_requests_are_refused)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	char name[NAME_MAX + 2];
	uint64_t bytes = 7;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	copied_file(AT_FDCWD, "from", 100, 1);
	ck_assert_int_eq(link("from", "same"), 0);
	close(copied_dir(AT_FDCWD, "dir", 0755));
	ck_assert_int_eq(weft_copy_file(NULL, "to", NULL, &bytes), -EINVAL);
	ck_assert_int_eq(weft_copy_file("from", NULL, NULL, &bytes), -EINVAL);
	opts.size = 0;
	ck_assert_int_eq(weft_copy_file("from", "to", &opts, &bytes), -EINVAL);
	ck_assert_int_eq(copy("from", "to", 1u << 31), -EINVAL);
	ck_assert_int_eq(copy("from", "from", WEFT_COPY_OVERWRITE), -EINVAL);
	ck_assert_int_eq(copy("from", "same", WEFT_COPY_OVERWRITE), -EINVAL);
	ck_assert_int_eq(copy("dir", "to", 0), -EISDIR);
	ck_assert_int_eq(copy("from", "dir", WEFT_COPY_OVERWRITE), -EISDIR);
	ck_assert_int_eq(copy("from", "dir/", 0), -ENOTDIR);
	ck_assert_int_eq(copy("from", "", 0), -ENOENT);
	ck_assert_int_eq(copy("gone", "to", 0), -ENOENT);
	ck_assert_int_eq(copy("from", "gone/to", 0), -ENOENT);
	ck_assert_int_eq(copy("from", "from/to", 0), -ENOTDIR);
	ck_assert_int_eq(copy("from", name, 0), -ENAMETOOLONG);
	ck_assert_int_eq(weft_copy_file("gone", "to", NULL, &bytes), -ENOENT);
	ck_assert_uint_eq(bytes, 7);
	expect_names(3);
	return 0;
}

START_TEST(call_outside_of_a_task_is_refused)
{
	ck_assert_int_eq(weft_copy_file("from", "to", NULL, NULL), -EPERM);
	ck_assert_int_eq(weft_copy_tree("from", "to", NULL, NULL), -EPERM);
}
END_TEST

IO_TEST(file_that_exists_is_kept_or_replaced)
{
	copied_file(AT_FDCWD, "from", 5000, 1);
	copied_file(AT_FDCWD, "to", 9000, 2);
	copied_file(AT_FDCWD, "before", 9000, 2);
	ck_assert_int_eq(copy("from", "to", 0), -EEXIST);
	expect_same("before", "to");
	ck_assert_int_eq(
		copy("from", "to", WEFT_COPY_OVERWRITE | WEFT_COPY_FSYNC), 0);
	expect_same("from", "to");
	expect_names(3);
	return 0;
}

IO_TEST(copy_has_a_limit_of_bytes)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	copied_file(AT_FDCWD, "from", 1 << 20, 1);
	opts.bytes_max = (1 << 20) - 1;
	ck_assert_int_eq(weft_copy_file("from", "to", &opts, NULL), -EFBIG);
	opts.bytes_max = 10;
	ck_assert_int_eq(weft_copy_file("/proc/self/maps", "to", &opts, NULL),
			 -EFBIG);
	expect_names(1);
	opts.bytes_max = 1 << 20;
	ck_assert_int_eq(weft_copy_file("from", "to", &opts, NULL), 0);
	return 0;
}

/* ---- Failures half-way ------------------------------------------------- */

IO_TEST(failure_half_way_leaves_nothing)
{
	struct rlimit old;

	copied_file(AT_FDCWD, "from", 3 << 20, 1);
	copied_file(AT_FDCWD, "to", 10, 2);
	signal(SIGXFSZ, SIG_IGN);
	old = limit_set(RLIMIT_FSIZE, 1 << 20);
	ck_assert_int_eq(copy("from", "new", 0), -EFBIG);
	ck_assert_int_eq(copy("from", "to", WEFT_COPY_OVERWRITE), -EFBIG);
	limit_reset(RLIMIT_FSIZE, old);
	ck_assert_int_eq(status_of("to").st_size, 10);
	expect_names(2);
	return 0;
}

static bool mount_small(void)
{
	return become_mount_owner() &&
	       mount("weft", copied_top, "tmpfs", 0, "size=1m") == 0 &&
	       chdir(copied_top) == 0;
}

static int64_t copy_to_full(void *arg)
{
	(void)arg;
	NEED(copy("from", "to", 0) == -ENOSPC);
	NEED(copied_count_names(".", "") == 1);
	NEED(mount("none", copied_top, "none", MS_REMOUNT | MS_RDONLY,
		   NULL) == 0);
	NEED(copy("from", "to", 0) == -EROFS);
	NEED(weft_copy_tree(copied_top, "to", NULL, NULL) == -EINVAL);
	return 0;
}

static int64_t mount_and_fill(void *arg)
{
	NEED(mount_small());
	copied_file(AT_FDCWD, "from", 700 << 10, 1);
	return weft_run(copy_to_full, arg, NULL);
}

START_TEST(full_and_read_only_file_systems_are_reported)
{
	if (test_needs(test_can(mount_small),
		       "full_and_read_only_file_systems_are_reported",
		       NEEDS_MOUNTS))
		child_run(mount_and_fill, NULL);
}
END_TEST

/* ---- Ends at any point ------------------------------------------------- */

enum { WHOLE_BYTES = (2 << 20) + 11, ENDS = 40 };

static void expect_whole_or_none(void)
{
	if (access("to", F_OK) < 0)
		return;
	expect_same("from", "to");
	ck_assert_int_eq(unlink("to"), 0);
}

/* A file whose copy takes many turns on any machine. */
static void slow_file(void)
{
	enum { PARTS = 4000 };
	int fd = open("from", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	for (off_t i = 0; i < PARTS; i++)
		ck_assert_int_eq(pwrite(fd, &i, sizeof(i), i << 13), sizeof(i));
	close(fd);
}

static void cancel_call(const struct weft_copy_counts *counts, void *arg)
{
	unsigned *calls = arg;

	ck_assert_uint_gt(counts->bytes, 0);
	if (--*calls == 0)
		ck_assert_int_eq(weft_cancel(weft_self()), 0);
}

static int64_t copy_cancelled(void *arg)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.on_progress = cancel_call;
	opts.arg = arg;
	ck_assert_int_eq(weft_copy_file("from", "to", &opts, NULL), -ECANCELED);
	return 0;
}

IO_TEST(copy_cancelled_between_two_turns_leaves_nothing)
{
	slow_file();
	for (unsigned calls = 1; calls <= 2; calls++) {
		WEFT_SUPERVISE (scope)
			ck_assert_int_eq(WEFT_GO(scope, copy_cancelled, calls),
					 0);
		expect_names(1);
	}
	return 0;
}

IO_TEST(late_copy_is_whole_or_not_there)
{
	copied_file(AT_FDCWD, "from", WHOLE_BYTES, 1);
	for (uint64_t i = 0; i < ENDS; i++) {
		int r = 0;

		WEFT_WITHIN (WEFT_US(3) * i * i)
			r = copy("from", "to", 0);
		ck_assert(r == 0 || r == -ETIMEDOUT);
		ck_assert_int_eq(r == 0, access("to", F_OK) == 0);
		expect_whole_or_none();
		expect_names(1);
	}
	return 0;
}

static int64_t copy_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		NEED(copy("from", "to", WEFT_COPY_OVERWRITE) == 0);
	return 0;
}

/* Of what was killed there may be a file of another name. */
START_TEST(killed_copy_is_whole_or_not_there)
{
	copied_file(AT_FDCWD, "from", WHOLE_BYTES, 1);
	for (long i = 0; i < ENDS; i++) {
		child_kill(copy_for_ever, NULL, 300000 * i);
		ck_assert_uint_eq(copied_count_names(".", "") -
					  copied_count_names(".",
							     ".weft-copy-"),
				  access("to", F_OK) == 0 ? 2 : 1);
		expect_whole_or_none();
	}
}
END_TEST

/* ---- Progress ---------------------------------------------------------- */

static void count_call(const struct weft_copy_counts *counts, void *arg)
{
	uint64_t *last = arg;

	ck_assert_uint_ge(counts->bytes, *last);
	*last = counts->bytes;
	ck_assert_int_eq(weft_yield(), 0);
}

IO_TEST(progress_is_reported_to_the_end)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	uint64_t last = 0;

	copied_file(AT_FDCWD, "from", WHOLE_BYTES, 1);
	opts.on_progress = count_call;
	opts.arg = &last;
	ck_assert_int_eq(weft_copy_file("from", "to", &opts, NULL), 0);
	ck_assert_uint_eq(last, WHOLE_BYTES);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("fs/copy_file");
	TCase *contents = tcase_create("contents");
	TCase *changes = tcase_create("changes");
	TCase *attributes = tcase_create("attributes");
	TCase *refusals = tcase_create("refusals");
	TCase *ends = tcase_create("ends");
	TCase *turns = tcase_create("turns");
	TCase *all[] = { contents, changes, attributes, refusals, ends };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		tcase_set_timeout(all[i], 60);
		tcase_add_checked_fixture(all[i], copied_setup,
					  copied_teardown);
		suite_add_tcase(suite, all[i]);
	}
	io_add_test(contents, copy_has_the_contents);
	io_add_test(contents, file_without_a_size_is_copied_to_its_end);
	io_add_test(contents, holes_stay_holes);
	io_add_test(contents, progress_is_reported_to_the_end);
	tcase_add_loop_test(
		changes, file_that_shrinks_is_copied_as_far_as_it_goes, 0, 2);
	tcase_add_loop_test(changes, file_that_grows_is_copied_as_it_was, 0, 2);
	tcase_add_test(changes,
		       sparse_file_that_shrinks_gets_no_hole_in_its_place);
	io_add_test(attributes, attributes_are_copied_on_request);
	io_add_test(attributes, link_is_copied_or_followed);
	io_add_test(attributes, node_is_made_on_request);
	io_add_test(refusals, wrong_requests_are_refused);
	tcase_add_test(refusals, call_outside_of_a_task_is_refused);
	io_add_test(refusals, file_that_exists_is_kept_or_replaced);
	io_add_test(refusals, copy_has_a_limit_of_bytes);
	io_add_test(ends, failure_half_way_leaves_nothing);
	tcase_add_test(ends, full_and_read_only_file_systems_are_reported);
	io_add_test(ends, late_copy_is_whole_or_not_there);
	tcase_add_test(ends, killed_copy_is_whole_or_not_there);
	/* Where files may share blocks a copy takes one turn. */
	tcase_set_timeout(turns, 60);
	tcase_add_checked_fixture(turns, copied_setup_quick, copied_teardown);
	io_add_test(turns, copy_cancelled_between_two_turns_leaves_nothing);
	suite_add_tcase(suite, turns);
	return io_tests_run(suite);
}

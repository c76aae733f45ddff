/* SPDX-License-Identifier: MIT */
/*
 * Copies where the kernel refuses calls, as some file systems and filters do,
 * and where a directory is exchanged meanwhile.  The calls are refused by a
 * filter, in a process of its own.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "tests/support/child_kit.h"
#include "tests/support/copied_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

enum { ALL = WEFT_COPY_ARCHIVE };

static int copy_tree(const char *from, const char *to, uint32_t flags)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = flags;
	return weft_copy_tree(from, to, &opts, NULL);
}

static int copy_file(const char *from, const char *to, uint32_t flags)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = flags;
	return weft_copy_file(from, to, &opts, NULL);
}

/* ---- Calls that have a substitute -------------------------------------- */

static int64_t copy_all(void *arg)
{
	(void)arg;
	NEED(copy_tree("from", "to", ALL) == 0);
	NEED(copy_tree("from/large", "large", 0) == 0);
	NEED(copy_file("from/large", "large", 0) == -EEXIST);
	/* Into a directory that is there. */
	NEED(mkdir("added", 0755) == 0);
	NEED(copy_tree("from", "added", ALL) == 0);
	NEED(copy_tree("from", "added", ALL) == -EEXIST);
	return 0;
}

static const struct {
	unsigned call, error;
} refused[] = {
	{ SYS_copy_file_range, EXDEV },	 { SYS_copy_file_range, EOPNOTSUPP },
	{ SYS_copy_file_range, EINVAL }, { SYS_copy_file_range, ENOSYS },
	{ SYS_copy_file_range, EPERM },	 { SYS_ioctl, ENOTTY },
#ifdef SYS_renameat
	{ SYS_renameat2, EINVAL },	 { SYS_renameat2, ENOSYS },
#endif
	{ SYS_lseek, EINVAL },		 { SYS_getrandom, ENOSYS },
};

enum { REFUSED = sizeof(refused) / sizeof(refused[0]) };

START_TEST(copy_does_without_refused_calls)
{
	if (!test_needs(test_can(child_may_refuse),
			"copy_does_without_refused_calls", NEEDS_REFUSED_CALLS))
		return;
	(void)copied_nasty("from");
	/* Without the call all of it is data. */
	if (refused[_i].call == SYS_lseek)
		ck_assert_int_eq(unlink("from/sparse"), 0);
	child_run_refused(&refused[_i].call, 1, refused[_i].error, copy_all,
			  NULL);
	copied_expect_same("from", "to", COPIED_ALL);
	copied_expect_same("from", "added", COPIED_ALL);
	ck_assert_uint_eq(copied_count_names(".", ".weft-copy-"), 0);
}
END_TEST

/* ---- Calls that have none ---------------------------------------------- */

static int64_t copy_attributes(void *arg)
{
	(void)arg;
	NEED(copy_file("from", "to", WEFT_COPY_XATTRS) == -EOPNOTSUPP);
	NEED(copy_file("from", "to", WEFT_COPY_MODE) == 0);
	NEED(unlink("to") == 0);
	return 0;
}

START_TEST(attribute_that_is_refused_is_an_error)
{
	unsigned call = SYS_fsetxattr;

	if (!test_needs(test_can(child_may_refuse),
			"attribute_that_is_refused_is_an_error",
			NEEDS_REFUSED_CALLS))
		return;
	copied_file(AT_FDCWD, "from", 100, 1);
	if (!test_needs(setxattr("from", "user.weft", "x", 1, 0) == 0,
			"attribute_that_is_refused_is_an_error",
			"attributes of files"))
		return;
	child_run_refused(&call, 1, EOPNOTSUPP, copy_attributes, NULL);
	ck_assert_uint_eq(copied_count_names(".", ""), 1);
}
END_TEST

static int64_t copy_owned(void *arg)
{
	(void)arg;
	NEED(copy_file("from", "to", WEFT_COPY_OWNER | WEFT_COPY_MODE) == 0);
	return 0;
}

/* It would be for another user. */
START_TEST(file_that_is_not_given_away_has_no_set_user_id)
{
	struct stat status;
	unsigned call = SYS_fchownat;

	if (!test_needs(test_can(child_may_refuse),
			"file_that_is_not_given_away_has_no_set_user_id",
			NEEDS_REFUSED_CALLS))
		return;
	copied_file(AT_FDCWD, "from", 100, 1);
	ck_assert_int_eq(chmod("from", 06755), 0);
	child_run_refused(&call, 1, EPERM, copy_owned, NULL);
	ck_assert_int_eq(stat("to", &status), 0);
	ck_assert_uint_eq(status.st_mode, S_IFREG | 0755);
}
END_TEST

static int64_t copy_node(void *arg)
{
	(void)arg;
	NEED(copy_file("/dev/null", "to", WEFT_COPY_NODES) == -EPERM);
	return 0;
}

START_TEST(device_needs_a_privilege)
{
	unsigned call = SYS_mknodat;

	if (!test_needs(test_can(child_may_refuse), "device_needs_a_privilege",
			NEEDS_REFUSED_CALLS))
		return;
	child_run_refused(&call, 1, EPERM, copy_node, NULL);
	ck_assert_uint_eq(copied_count_names(".", ""), 0);
}
END_TEST

/* ---- A lease ----------------------------------------------------------- */

static int lease_fd;

static void lease_end(int number)
{
	int error = errno;

	(void)number;
	(void)fcntl(lease_fd, F_SETLEASE, F_UNLCK);
	errno = error;
}

/* An open that does not wait for it fails. */
IO_TEST(file_with_a_lease_is_waited_for)
{
	copied_file(AT_FDCWD, "from", 100, 1);
	lease_fd = open("from", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(lease_fd, 0);
	signal(SIGIO, lease_end);
	if (test_needs(fcntl(lease_fd, F_SETLEASE, F_WRLCK) == 0,
		       "file_with_a_lease_is_waited_for", "leases"))
		ck_assert_int_eq(copy_file("from", "to", 0), 0);
	signal(SIGIO, SIG_DFL);
	close(lease_fd);
	return 0;
}

/* ---- Another directory in its place ------------------------------------ */

static void exchange(const char *path, void *arg)
{
	bool *done = arg;

	(void)path;
	if (*done)
		return;
	*done = true;
	ck_assert_int_eq(rename("from/d", "elsewhere"), 0);
	ck_assert_int_eq(mkdir("from/d", 0755), 0);
}

/* The descriptors of the upper ones were closed on the way down. */
IO_TEST(directory_that_was_exchanged_is_an_error)
{
	enum { DEPTH = 60, FEW_FDS = 70 };
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	struct rlimit old;
	bool done = false;
	int dir;

	/* Of the clean-up. */
	if (!test_needs(test_has_descriptors(200),
			"directory_that_was_exchanged_is_an_error",
			"descriptors"))
		return 0;
	dir = copied_dir(AT_FDCWD, "from", 0755);
	for (int i = 0; i < DEPTH; i++) {
		int sub = copied_dir(dir, "d", 0755);

		close(dir);
		dir = sub;
	}
	close(dir);
	old = limit_set(RLIMIT_NOFILE, FEW_FDS);
	opts.on_copied = exchange;
	opts.jobs_max = 1;
	opts.arg = &done;
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, NULL), -ESTALE);
	limit_reset(RLIMIT_NOFILE, old);
	ck_assert_uint_eq(copied_count_names(".", ".weft-copy-"), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("fs/copy_refused");
	TCase *tcase = tcase_create("refused");

	tcase_add_checked_fixture(tcase, copied_setup, copied_teardown);
	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, copy_does_without_refused_calls, 0, REFUSED);
	tcase_add_test(tcase, attribute_that_is_refused_is_an_error);
	tcase_add_test(tcase, file_that_is_not_given_away_has_no_set_user_id);
	tcase_add_test(tcase, device_needs_a_privilege);
	io_add_test(tcase, file_with_a_lease_is_waited_for);
	io_add_test(tcase, directory_that_was_exchanged_is_an_error);
	return io_tests_run(suite);
}

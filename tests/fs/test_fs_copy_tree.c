/* SPDX-License-Identifier: MIT */
/*
 * weft_copy_tree(): trees of all that file systems have, compared with the
 * original and with the copy that cp makes; trees that change meanwhile; and
 * what is left when a copy ends early.
 */
#include <grp.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "tests/support/child_kit.h"
#include "tests/support/copied_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

static int copy(const char *from, const char *to, uint32_t flags)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = flags;
	return weft_copy_tree(from, to, &opts, NULL);
}

/* ---- Whole trees ------------------------------------------------------- */

IO_TEST(archive_is_the_same_as_the_original)
{
	struct weft_copy_counts counts;
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	(void)test_needs(copied_nasty("from"),
			 "archive_is_the_same_as_the_original: its links",
			 NEEDS_XATTRS_OF_LINKS);
	opts.flags = WEFT_COPY_ARCHIVE;
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, &counts), 0);
	copied_expect_same("from", "to", COPIED_ALL);
	ck_assert_uint_eq(counts.files + counts.directories,
			  copied_count_names("from", "") + 1);
	ck_assert_uint_eq(counts.directories, 6);
	ck_assert_uint_eq(counts.errors, 0);
	ck_assert_uint_eq(copied_count_names("to", ".weft-copy-"), 0);
	return 0;
}

static bool has_cp(void)
{
	return system("cp --version 2>/dev/null | grep -q coreutils") == 0;
}

static int64_t copy_both(void *arg)
{
	(void)arg;
	ck_assert_int_eq(copy("from", "our archive", WEFT_COPY_ARCHIVE), 0);
	ck_assert_int_eq(copy("from", "our plain", WEFT_COPY_NODES), 0);
	return 0;
}

/* cp -r gives a file the times of now, and knows no links. */
START_TEST(copies_are_the_same_as_those_of_cp)
{
	if (!test_needs(has_cp(), "copies_are_the_same_as_those_of_cp",
			"cp of the coreutils"))
		return;
	(void)test_needs(copied_nasty("from"),
			 "copies_are_the_same_as_those_of_cp: their links",
			 NEEDS_XATTRS_OF_LINKS);
	ck_assert_int_eq(system("cp -a from archive"), 0); /* NOLINT */
	ck_assert_int_eq(system("cp -r from plain"), 0);   /* NOLINT */
	io_run(copy_both, NULL, 2);
	copied_expect_same("archive", "our archive", COPIED_ALL);
	copied_expect_same("plain", "our plain",
			   COPIED_MODES | COPIED_OWNERS | COPIED_LINKS |
				   COPIED_XATTRS);
}
END_TEST

/* Several reads of a directory, shared by runners. */
IO_TEST(large_directory_is_copied_once)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	struct weft_copy_counts counts;

	copied_broad("from", 2, 600);
	for (uint32_t jobs = 1; jobs <= 4; jobs += 3) {
		opts.jobs_max = jobs;
		ck_assert_int_eq(weft_copy_tree("from", "to", &opts, &counts),
				 0);
		ck_assert_uint_eq(counts.files, 1200);
		ck_assert_uint_eq(counts.directories, 3);
		copied_expect_same("from", "to", COPIED_MODES);
		copied_remove("to");
	}
	return 0;
}

/* Deeper than descriptors go, longer than paths go; and directories of several
 * reads on the way, which are opened again. */
IO_TEST(deep_tree_needs_few_descriptors)
{
	enum { DEPTH = 120, FILES = 1, MANY = 800, FEW_FDS = 100 };
	struct rlimit old;
	char name[128];
	int dir, before;

	/* Of the comparison. */
	if (!test_needs(test_has_descriptors(400),
			"deep_tree_needs_few_descriptors", "descriptors"))
		return 0;
	dir = copied_dir(AT_FDCWD, "from", 0755);
	before = fds_open();
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < DEPTH; i++) {
		int sub = copied_dir(dir, name, 0755);

		for (int j = 0; j < (i == 10 ? MANY : FILES); j++) {
			char file[64];

			snprintf(file, sizeof(file),
				 "a name that is somewhat long: %d", j);
			copied_file(dir, file, 10, (unsigned)(i + j));
		}
		close(dir);
		dir = sub;
	}
	close(dir);
	old = limit_set(RLIMIT_NOFILE, FEW_FDS);
	ck_assert_int_eq(copy("from", "to", WEFT_COPY_ARCHIVE), 0);
	limit_reset(RLIMIT_NOFILE, old);
	ck_assert_int_le(fds_open(), before);
	copied_expect_same("from", "to", COPIED_ALL);
	return 0;
}

/* Names of a file in many directories, met by several runners. */
IO_TEST(hard_links_stay_links_on_request)
{
	enum { DIRS = 20, FILES = 6 };
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	char name[64], other[64];

	copied_broad("from", DIRS, FILES);
	for (int i = 1; i < DIRS; i++) {
		for (int j = 0; j < FILES; j++) {
			snprintf(name, sizeof(name),
				 "from/dir-0/a file of number %d", j);
			snprintf(other, sizeof(other), "from/dir-%d/link %d", i,
				 j);
			ck_assert_int_eq(link(name, other), 0);
		}
	}
	/* One that has a name elsewhere. */
	ck_assert_int_eq(link(name, "outside"), 0);
	opts.jobs_max = 4;
	opts.flags = WEFT_COPY_LINKS;
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, NULL), 0);
	ck_assert_int_eq(unlink("outside"), 0);
	copied_expect_same("from", "to", COPIED_LINKS | COPIED_MODES);
	opts.flags = 0;
	ck_assert_int_eq(weft_copy_tree("from", "plain", &opts, NULL), 0);
	copied_expect_same("from", "plain", COPIED_MODES);
	return 0;
}

static int64_t copy_as_user(void *arg)
{
	(void)arg;
	NEED(copy("from", "to", WEFT_COPY_ARCHIVE) == 0);
	NEED(copy("from", "plain", WEFT_COPY_NODES) == 0);
	return 0;
}

/* A user that is not root cannot write into it. */
static int64_t copy_unprivileged(void *arg)
{
	NEED(geteuid() != 0 ||
	     (setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 &&
	      setresuid(65534, 65534, 65534) == 0));
	(void)copied_nasty("from");
	NEED(mkdir("from/closed", 0755) == 0);
	copied_file(AT_FDCWD, "from/closed/file", 10, 1);
	NEED(chmod("from/closed", 0500) == 0);
	return weft_run(copy_as_user, arg, NULL);
}

START_TEST(read_only_directory_is_copied_by_any_user)
{
	child_run(copy_unprivileged, NULL);
	copied_expect_same("from", "to", COPIED_ALL);
	copied_expect_same("from", "plain", 0);
	ck_assert_int_eq(access("plain/read-only", F_OK), 0);
}
END_TEST

/* Many at a time: pools, lanes and idle runners. */
static int64_t copy_aside(void *arg)
{
	char name[32];

	snprintf(name, sizeof(name), "to-%d", *(int *)arg);
	ck_assert_int_eq(copy("from", name, WEFT_COPY_LINKS), 0);
	return 0;
}

IO_TEST(trees_are_copied_at_the_same_time)
{
	enum { TREES = 8 };

	copied_broad("from", 6, 12);
	WEFT_SUPERVISE (scope)
		for (int i = 0; i < TREES; i++)
			ck_assert_int_eq(WEFT_GO(scope, copy_aside, i), 0);
	for (int i = 0; i < TREES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "to-%d", i);
		copied_expect_same("from", name, COPIED_MODES);
	}
	return 0;
}

/* ---- Where it is copied to --------------------------------------------- */

IO_TEST(tree_is_not_copied_into_itself)
{
	const char *const to[] = { "from",	     "from/",	   "from/new",
				   "from/dir-0/new", "from/dir-0", "link/new" };

	copied_broad("from", 1, 1);
	ck_assert_int_eq(symlink("from/dir-0", "link"), 0);
	for (unsigned i = 0; i < sizeof(to) / sizeof(to[0]); i++)
		ck_assert_int_eq(copy("from", to[i], 0), -EINVAL);
	ck_assert_uint_eq(copied_count_names(".", ""), 4);
	ck_assert_int_eq(copy("from", "from2", 0), 0);
	return 0;
}

IO_TEST(tree_is_added_to_a_directory)
{
	copied_broad("from", 3, 3);
	copied_broad("to", 2, 2);
	copied_file(AT_FDCWD, "to/dir-1/a file of number 0", 7, 99);
	ck_assert_int_eq(copy("from", "to", 0), -EEXIST);
	ck_assert_int_eq(copy("from", "to/", WEFT_COPY_OVERWRITE), 0);
	copied_expect_same("from", "to", COPIED_MODES);
	/* A directory is never replaced by a file, nor the other way. */
	ck_assert_int_eq(unlink("from/dir-0/a file of number 0"), 0);
	close(copied_dir(AT_FDCWD, "from/dir-0/a file of number 0", 0755));
	ck_assert_int_eq(copy("from", "to", WEFT_COPY_OVERWRITE), -ENOTDIR);
	copied_remove("from");
	copied_broad("from", 1, 1);
	ck_assert_int_eq(unlink("to/dir-0/a file of number 0"), 0);
	close(copied_dir(AT_FDCWD, "to/dir-0/a file of number 0", 0755));
	ck_assert_int_eq(copy("from", "to", WEFT_COPY_OVERWRITE), -EISDIR);
	ck_assert_uint_eq(copied_count_names(".", ".weft-copy-"), 0);
	return 0;
}

IO_TEST(single_file_is_copied_as_one)
{
	struct weft_copy_counts counts;

	copied_file(AT_FDCWD, "from", 1000, 1);
	close(copied_dir(AT_FDCWD, "dir", 0755));
	ck_assert_int_eq(symlink("dir", "link"), 0);
	ck_assert_int_eq(weft_copy_tree("from", "to", NULL, &counts), 0);
	ck_assert_uint_eq(counts.files, 1);
	ck_assert_uint_eq(counts.bytes, 1000);
	/* A link as such, or the directory that it is to. */
	ck_assert_int_eq(copy("link", "copy", 0), 0);
	ck_assert_int_eq(readlink("copy", (char[8]){ 0 }, 8), 3);
	ck_assert_int_eq(copy("link", "followed", WEFT_COPY_FOLLOW), 0);
	ck_assert_int_eq(rmdir("followed"), 0);
	ck_assert_int_eq(copy("gone", "none", 0), -ENOENT);
	ck_assert_int_eq(copy("dir", "from", WEFT_COPY_OVERWRITE), -ENOTDIR);
	return 0;
}

IO_TEST(attributes_of_a_single_link_are_copied)
{
	char value[16] = "";

	ck_assert_int_eq(symlink("gone", "link"), 0);
	if (!test_needs(lsetxattr("link", "trusted.weft", "value", 5, 0) == 0,
			"attributes_of_a_single_link_are_copied",
			NEEDS_XATTRS_OF_LINKS))
		return 0;
	ck_assert_int_eq(copy("link", "to", WEFT_COPY_XATTRS), 0);
	ck_assert_int_eq(lgetxattr("to", "trusted.weft", value, sizeof(value)),
			 5);
	ck_assert_str_eq(value, "value");
	ck_assert_int_eq(copy("link", "plain", 0), 0);
	ck_assert_int_lt(
		lgetxattr("plain", "trusted.weft", value, sizeof(value)), 0);
	return 0;
}

IO_TEST(tree_has_a_limit_of_bytes)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	close(copied_dir(AT_FDCWD, "from", 0755));
	copied_file(AT_FDCWD, "from/a", 1000, 1);
	copied_file(AT_FDCWD, "from/b", 1000, 1);
	opts.bytes_max = 1999;
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, NULL), -EFBIG);
	opts.bytes_max = 2000;
	ck_assert_int_eq(weft_copy_tree("from", "whole", &opts, NULL), 0);
	return 0;
}

static bool mount_below(void)
{
	return become_mount_owner() &&
	       (mkdir("from", 0755) == 0 || errno == EEXIST) &&
	       (mkdir("from/mount", 0755) == 0 || errno == EEXIST) &&
	       mount("weft", "from/mount", "tmpfs", 0, "size=1m") == 0;
}

static int64_t copy_one_device(void *arg)
{
	(void)arg;
	NEED(copy("from", "one", WEFT_COPY_ONE_DEVICE) == 0);
	NEED(copied_is_there("one/mount") &&
	     !copied_is_there("one/mount/file"));
	NEED(copy("from", "both", WEFT_COPY_FSYNC) == 0);
	NEED(copied_is_there("both/mount/file"));
	/* The copy is met inside of the original. */
	NEED(mkdir("copy", 0755) == 0);
	NEED(mount("copy", "from/mount", "none", MS_BIND, NULL) == 0);
	NEED(copy("from", "copy", 0) == -EINVAL);
	return 0;
}

static int64_t mount_and_copy(void *arg)
{
	NEED(mount_below());
	copied_file(AT_FDCWD, "from/mount/file", 10, 1);
	return weft_run(copy_one_device, arg, NULL);
}

START_TEST(other_devices_are_left_out_on_request)
{
	if (test_needs(test_can(mount_below),
		       "other_devices_are_left_out_on_request", NEEDS_MOUNTS))
		child_run(mount_and_copy, NULL);
}
END_TEST

/* ---- Functions, errors ------------------------------------------------- */

struct seen {
	unsigned copied, errors, progress;
	size_t longest;
	int error;  /* the last */
	int answer; /* of on_error */
	bool removes;
};

static void on_progress(const struct weft_copy_counts *counts, void *arg)
{
	struct seen *seen = arg;
	int r = weft_yield();

	ck_assert_uint_ge(counts->files + counts->directories, seen->progress);
	seen->progress = (unsigned)(counts->files + counts->directories);
	ck_assert(r == 0 || r == -ETIMEDOUT);
}

static void on_copied(const char *path, void *arg)
{
	struct seen *seen = arg;

	ck_assert_int_eq(strncmp(path, "from", 4), 0);
	ck_assert(!strstr(path, "//"));
	if (strlen(path) > seen->longest)
		seen->longest = strlen(path);
	if (strlen(path) < PATH_MAX)
		ck_assert(seen->removes || copied_is_there(path));
	if (seen->removes && seen->copied == 0)
		(void)!system("rm from/dir-0/*"); /* NOLINT: names of ours */
	seen->copied++;
}

static int on_error(const char *path, int error, void *arg)
{
	struct seen *seen = arg;

	ck_assert_int_eq(strncmp(path, "from", 4), 0);
	seen->errors++;
	seen->error = error;
	return seen->answer;
}

static struct weft_copy_opts seen_opts(struct seen *seen)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.on_progress = on_progress;
	opts.on_copied = on_copied;
	opts.on_error = on_error;
	opts.arg = seen;
	return opts;
}

IO_TEST(each_copy_is_reported_once)
{
	enum { DEPTH = 25 };
	struct seen seen = { 0 };
	struct weft_copy_opts opts = seen_opts(&seen);
	struct weft_copy_counts counts;
	char name[201];
	int dir;

	copied_broad("from", 5, 20);
	memset(name, 'd', 200);
	name[200] = '\0';
	dir = copied_dir(AT_FDCWD, "from/deep", 0755);
	for (int i = 0; i < DEPTH; i++) {
		int sub = copied_dir(dir, name, 0755);

		close(dir);
		dir = sub;
	}
	copied_file(dir, "file", 1, 1);
	close(dir);
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, &counts), 0);
	ck_assert_uint_eq(seen.copied, 1 + 5 + 5 * 20 + 1 + DEPTH + 1);
	ck_assert_uint_eq(seen.copied, counts.files + counts.directories);
	ck_assert_uint_eq(seen.progress, seen.copied);
	ck_assert_uint_eq(seen.longest,
			  strlen("from/deep") + DEPTH * 201 + strlen("/file"));
	ck_assert_uint_eq(seen.errors, 0);
	return 0;
}

/* Files that are gone when their turn comes. */
IO_TEST(error_is_let_pass_or_ends_the_call)
{
	struct seen seen = { .removes = true };
	struct weft_copy_opts opts = seen_opts(&seen);
	struct weft_copy_counts counts;

	copied_broad("from", 1, 20);
	opts.jobs_max = 1;
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, &counts), 0);
	ck_assert_uint_eq(seen.errors, 19);
	ck_assert_int_eq(seen.error, -ENOENT);
	ck_assert_uint_eq(counts.errors, 19);
	ck_assert_uint_eq(counts.files, 1);
	ck_assert_uint_eq(copied_count_names("to", ""), 2);

	/* Whatever it answers that is no error. */
	copied_remove("from");
	copied_broad("from", 1, 20);
	seen = (struct seen){ .removes = true, .answer = 3 };
	ck_assert_int_eq(weft_copy_tree("from", "same", &opts, &counts), 0);
	ck_assert_uint_eq(seen.errors, 19);
	ck_assert_uint_eq(counts.errors, 19);

	copied_remove("from");
	copied_broad("from", 1, 20);
	seen = (struct seen){ .removes = true, .answer = -ENOTTY };
	ck_assert_int_eq(weft_copy_tree("from", "other", &opts, &counts),
			 -ENOTTY);
	ck_assert_uint_eq(seen.errors, 1);
	ck_assert_uint_eq(counts.errors, 0);
	/* The file that is complete has remained, in its directory. */
	ck_assert_uint_eq(copied_count_names("other", ""), 2);
	ck_assert_uint_eq(copied_count_names(".", ".weft-copy-"), 0);

	copied_remove("from");
	copied_broad("from", 1, 20);
	seen = (struct seen){ .removes = true };
	opts.on_error = NULL;
	ck_assert_int_eq(weft_copy_tree("from", "third", &opts, &counts),
			 -ENOENT);
	return 0;
}

IO_TEST(node_is_an_error_unless_asked_for)
{
	struct seen seen = { 0 };
	struct weft_copy_opts opts = seen_opts(&seen);

	copied_broad("from", 1, 2);
	ck_assert_int_eq(mkfifo("from/fifo", 0600), 0);
	ck_assert_int_eq(copy("from", "to", 0), -EOPNOTSUPP);
	ck_assert_int_eq(weft_copy_tree("from", "other", &opts, NULL), 0);
	ck_assert_int_eq(seen.error, -EOPNOTSUPP);
	ck_assert_uint_eq(seen.errors, 1);
	ck_assert(!copied_is_there("other/fifo"));
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("fs/copy_tree");
	TCase *whole = tcase_create("whole");
	TCase *many = tcase_create("many");
	TCase *places = tcase_create("places");
	TCase *calls = tcase_create("calls");
	TCase *all[] = { whole, many, places, calls };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		tcase_add_checked_fixture(all[i],
					  i ? copied_setup_quick : copied_setup,
					  copied_teardown);
		suite_add_tcase(suite, all[i]);
	}
	io_add_test(whole, archive_is_the_same_as_the_original);
	tcase_add_test(whole, copies_are_the_same_as_those_of_cp);
	io_add_test(many, large_directory_is_copied_once);
	io_add_test(many, deep_tree_needs_few_descriptors);
	io_add_test(many, hard_links_stay_links_on_request);
	tcase_add_test(whole, read_only_directory_is_copied_by_any_user);
	io_add_test(many, trees_are_copied_at_the_same_time);
	io_add_test(places, tree_is_not_copied_into_itself);
	io_add_test(places, tree_is_added_to_a_directory);
	io_add_test(places, single_file_is_copied_as_one);
	io_add_test(places, attributes_of_a_single_link_are_copied);
	io_add_test(places, tree_has_a_limit_of_bytes);
	tcase_add_test(places, other_devices_are_left_out_on_request);
	io_add_test(calls, each_copy_is_reported_once);
	io_add_test(calls, error_is_let_pass_or_ends_the_call);
	io_add_test(calls, node_is_an_error_unless_asked_for);
	return io_tests_run(suite);
}

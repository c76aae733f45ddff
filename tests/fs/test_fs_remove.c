/* SPDX-License-Identifier: MIT */
/*
 * Suite fs/remove: weft_remove_tree().
 *
 * Trees of all kinds are removed, with each choice of options.  The counts and
 * the reports are compared with a list that was made without weft before
 * (tests/support/tree_kit.h).  Further: links, errors, directories that are
 * closed to the user, mount points, and a kernel without openat2(2).
 */
#include <sys/mount.h>
#include <sys/stat.h>

#include "fs/tree_call.h"
#include "tests/support/child_kit.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/tree_kit.h"

static bool exists(const struct tree *tree, const char *path)
{
	struct stat st;

	return fstatat(tree->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Is the tree's directory empty? */
static bool is_empty(const struct tree *tree)
{
	struct tree_list list = { 0 };
	bool empty;

	tree_list(tree->fd, ".", &list);
	empty = list.count == 1;
	tree_list_free(&list);
	return empty;
}

/* The findings of tree_list(), as counts. */
static struct weft_remove_counts counts_of(const struct tree_list *list)
{
	struct weft_remove_counts counts = { 0, 0, 0 };

	for (size_t i = 0; i < list->count; i++)
		if (atoi(strrchr(list->texts[i], '\t') + 1) == DT_DIR)
			counts.directories++;
		else
			counts.files++;
	return counts;
}

static void expect_counts(struct weft_remove_counts got,
			  struct weft_remove_counts expected)
{
	ck_assert_uint_eq(got.files, expected.files);
	ck_assert_uint_eq(got.directories, expected.directories);
	ck_assert_uint_eq(got.failed, expected.failed);
}

/* ---- Whole trees ------------------------------------------------------ */

struct reports {
	struct tree_list removed, failed;
	int stop_after; /* reports; 0: never */
	weft__atomic(int) inside;
};

static int report(const char *path, int error, void *arg)
{
	struct reports *reports = arg;

	/* relaxed: compared with itself. */
	EXPECT(weft__add(&reports->inside, 1, relaxed) == 0);
	tree_list_add(error ? &reports->failed : &reports->removed, path);
	weft__sub(&reports->inside, 1, relaxed);
	return reports->stop_after && --reports->stop_after == 0 ? -EXDEV : 0;
}

static void reports_free(struct reports *reports)
{
	tree_list_free(&reports->removed);
	tree_list_free(&reports->failed);
}

/* Cuts the types off. */
static void paths_only(struct tree_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		*strrchr(list->texts[i], '\t') = '\0';
}

/* Removes "t" of the tree, which has a list of its own. */
static void expect_removal(const struct tree *tree, unsigned flags)
{
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_remove_counts counts, expected;
	struct reports reports = { .stop_after = 0 };
	struct tree_list list = { 0 };

	tree_list(tree->fd, "t", &list);
	expected = counts_of(&list);
	paths_only(&list);
	opts.flags = flags;
	opts.report = report;
	opts.arg = &reports;
	opts.ret_counts = &counts;
	opts.tasks = flags & WEFT_REMOVE_GO_ON ? 3 : 0;
	ck_assert_int_eq(weft_remove_tree(tree->fd, "t", &opts), 0);
	if (flags & WEFT_REMOVE_CONTENTS) {
		expected.directories--;
		*list.texts[0] = '\0';
		tree_list_add(&reports.removed, "");
	}
	expect_counts(counts, expected);
	ck_assert_uint_eq(reports.failed.count, 0);
	if (flags & WEFT_REMOVE_QUIET)
		ck_assert_uint_eq(reports.removed.count, 0);
	else
		tree_lists_compare(&reports.removed, &list);
	ck_assert_int_eq(exists(tree, "t"),
			 (flags & WEFT_REMOVE_CONTENTS) != 0);
	reports_free(&reports);
	tree_list_free(&list);
}

static const unsigned choices[] = {
	0, WEFT_REMOVE_GO_ON, WEFT_REMOVE_QUIET, WEFT_REMOVE_CONTENTS,
	WEFT_REMOVE_ONE_MOUNT | WEFT_REMOVE_GO_ON,
};

IO_TEST(nasty_tree_is_removed)
{
	struct tree tree, below;

	tree_open(&tree);
	for (unsigned i = 0; i < 5; i++) {
		tree_below(&tree, &below);
		tree_make_nasty(&below);
		close(below.fd);
		expect_removal(&tree, choices[i]);
	}
	tree_close(&tree);
	return 0;
}

IO_TEST(random_trees_are_removed)
{
	const char *seed = getenv("WEFT_TEST_SEED");
	unsigned first = seed ? (unsigned)atoi(seed) : 1;
	struct tree tree, below;

	tree_open(&tree);
	for (unsigned i = first; i < first + 5; i++) {
		printf("seed %u\n", i);
		tree_below(&tree, &below);
		tree_make_random(&below, i, 1000);
		close(below.fd);
		expect_removal(&tree, choices[i % 5]);
	}
	tree_close(&tree);
	return 0;
}

/* A path of 10,000 bytes, with few descriptors and a small stack. */
IO_TEST(deep_tree_is_removed)
{
	enum { LEVELS = 5000, DESCRIPTORS = 64 };
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_remove_counts counts;
	struct rlimit old;
	struct tree tree;

	tree_open(&tree);
	tree_make_deep(&tree, "d", LEVELS);
	old = limit_set(RLIMIT_NOFILE, DESCRIPTORS);
	opts.ret_counts = &counts;
	opts.tasks = 2;
	ck_assert_int_eq(weft_remove_tree(tree.fd, "d", &opts), 0);
	expect_counts(counts, (struct weft_remove_counts){ 1, LEVELS, 0 });
	limit_reset(RLIMIT_NOFILE, old);
	ck_assert(is_empty(&tree));
	tree_close(&tree);
	return 0;
}

IO_TEST(links_are_removed_and_not_followed)
{
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_remove_counts counts;
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "victim");
	tree_file(&tree, "victim/file");
	tree_dir(&tree, "t");
	ck_assert_int_eq(symlinkat("../victim", tree.fd, "t/link"), 0);
	ck_assert_int_eq(symlinkat("victim", tree.fd, "link"), 0);
	ck_assert_int_eq(weft_remove_tree(tree.fd, "t", NULL), 0);
	ck_assert(!exists(&tree, "t") && exists(&tree, "victim/file"));
	/* With a slash it is to be a directory, and is a link.  (GNU's rm
	 * empties the directory that the link names.) */
	ck_assert_int_eq(weft_remove_tree(tree.fd, "link/", NULL), -ENOTDIR);
	opts.flags = WEFT_REMOVE_CONTENTS;
	ck_assert_int_eq(weft_remove_tree(tree.fd, "link", &opts), -ENOTDIR);
	ck_assert(exists(&tree, "link") && exists(&tree, "victim/file"));
	opts.flags = 0;
	opts.ret_counts = &counts;
	ck_assert_int_eq(weft_remove_tree(tree.fd, "link", &opts), 0);
	expect_counts(counts, (struct weft_remove_counts){ 1, 0, 0 });
	ck_assert(!exists(&tree, "link") && exists(&tree, "victim/file"));
	/* A file is a tree, too. */
	ck_assert_int_eq(weft_remove_tree(tree.fd, "victim/file/", &opts),
			 -ENOTDIR);
	expect_counts(counts, (struct weft_remove_counts){ 0, 0, 0 });
	ck_assert_int_eq(weft_remove_tree(tree.fd, "victim/file", &opts), 0);
	ck_assert_int_eq(weft_remove_tree(tree.fd, "victim//", &opts), 0);
	ck_assert(is_empty(&tree));
	tree_close(&tree);
	return 0;
}

/* ---- Errors ----------------------------------------------------------- */

IO_TEST(wrong_removals_are_refused)
{
	static const char *const paths[] = { "",     ".",  "t/.",
					     "t/..", "./", "t/../" };
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_remove_counts counts = { 7, 7, 7 };
	struct tree tree;

	tree_open(&tree);
	tree_file(&tree, "file");
	tree_dir(&tree, "t");
	opts.ret_counts = &counts;
	for (unsigned i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		ck_assert_int_eq(weft_remove_tree(tree.fd, paths[i], &opts),
				 -EINVAL);
	expect_counts(counts, (struct weft_remove_counts){ 0, 0, 0 });
	ck_assert_int_eq(weft_remove_tree(tree.fd, NULL, NULL), -EFAULT);
	ck_assert_int_eq(weft_remove_tree(tree.fd, "no", NULL), -ENOENT);
	ck_assert_int_eq(weft_remove_tree(-1, "file", NULL), -EBADF);
	opts.flags = 1u << 31;
	counts.failed = 7;
	ck_assert_int_eq(weft_remove_tree(tree.fd, "file", &opts), -EINVAL);
	expect_counts(counts, (struct weft_remove_counts){ 0, 0, 0 });
	opts.flags = 0;
	opts.size = 1;
	ck_assert_int_eq(weft_remove_tree(tree.fd, "file", &opts), -EINVAL);
	ck_assert(exists(&tree, "file") && exists(&tree, "t"));
	opts.size = sizeof(opts);
	opts.flags = WEFT_REMOVE_CONTENTS;
	ck_assert_int_eq(weft_remove_tree(tree.fd, ".", &opts), 0);
	expect_counts(counts, (struct weft_remove_counts){ 1, 1, 0 });
	ck_assert(is_empty(&tree));
	tree_close(&tree);
	return 0;
}

static bool can_change_root(void)
{
	return chroot("/tmp") == 0 && chdir("/") == 0;
}

/* In a child whose root directory is a tree of the test, in case that it is
 * not refused. */
static int64_t remove_root_directory(void *arg)
{
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;

	(void)arg;
	opts.flags = WEFT_REMOVE_CONTENTS;
	NEED(weft_remove_tree(AT_FDCWD, "/", NULL) == -EINVAL);
	NEED(weft_remove_tree(AT_FDCWD, "//", &opts) == -EINVAL);
	NEED(weft_remove_tree(AT_FDCWD, "..", NULL) == -EINVAL);
	return 0;
}

static int64_t remove_changed_root(void *arg)
{
	const struct tree *tree = arg;

	NEED(chroot(tree->path) == 0 && chdir("/") == 0);
	return weft_run(remove_root_directory, NULL, NULL);
}

START_TEST(root_directory_is_refused)
{
	struct tree tree;

	tree_open(&tree);
	tree_file(&tree, "file");
	child_run(remove_changed_root, &tree);
	ck_assert(exists(&tree, "file"));
	tree_close(&tree);
}
END_TEST

START_TEST(removal_needs_a_task)
{
	ck_assert_int_eq(weft_remove_tree(AT_FDCWD, "no", NULL), -EPERM);
}
END_TEST

IO_TEST(report_ends_the_removal)
{
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct reports reports = { .stop_after = 10 };
	struct tree tree, below;

	tree_open(&tree);
	tree_below(&tree, &below);
	tree_make_random(&below, 1, 2000);
	close(below.fd);
	opts.report = report;
	opts.arg = &reports;
	ck_assert_int_eq(weft_remove_tree(tree.fd, "t", &opts), -EXDEV);
	reports_free(&reports);
	tree_close(&tree);
	return 0;
}

/* Runs in a child of another user: some directories are closed to it, and from
 * others nothing may be removed. */
static int64_t remove_closed(void *arg)
{
	const struct tree *tree = arg;
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_remove_counts counts;
	struct reports reports = { .stop_after = 0 };

	opts.report = report;
	opts.arg = &reports;
	opts.ret_counts = &counts;
	/* It is a directory, whether it can be opened or not. */
	NEED(weft_remove_tree(tree->fd, "t/closed/", &opts) == -EACCES);
	opts.flags = WEFT_REMOVE_CONTENTS;
	NEED(weft_remove_tree(tree->fd, "t/closed_empty", &opts) == -EACCES);
	NEED(counts.failed == 1 && exists(tree, "t/closed_empty"));
	opts.flags = 0;
	reports_free(&reports);
	/* One that is closed and empty can be removed. */
	NEED(weft_remove_tree(tree->fd, "t/closed_empty", &opts) == 0);
	opts.flags = WEFT_REMOVE_QUIET;
	NEED(weft_remove_tree(tree->fd, "t/fixed", &opts) == -EACCES);
	NEED(counts.failed != 0);
	reports_free(&reports);
	opts.flags |= WEFT_REMOVE_GO_ON;
	NEED(weft_remove_tree(tree->fd, "t", &opts) == -EACCES);
	/* The two files, and the directory; not those above them. */
	NEED(counts.files == 1 && counts.directories == 1);
	NEED(counts.failed == 3 && reports.failed.count == 3);
	tree_list_sort(&reports.failed);
	NEED(strcmp(reports.failed.texts[0], "closed") == 0);
	NEED(strcmp(reports.failed.texts[1], "fixed/a") == 0);
	reports_free(&reports);
	return 0;
}

static void closed_make(const struct tree *tree)
{
	tree_dir(tree, "t/closed_empty");
	tree_dir(tree, "t/closed");
	tree_file(tree, "t/closed/file");
	tree_dir(tree, "t/fixed");
	tree_file(tree, "t/fixed/a");
	tree_file(tree, "t/fixed/b");
	tree_dir(tree, "t/open");
	tree_file(tree, "t/open/file");
}

/* Gives the tree to the user that the process has become. */
static int64_t remove_closed_unprivileged(void *arg)
{
	const struct tree *tree = arg;

	NEED(fchmod(tree->fd, 0777) == 0 && become_unprivileged());
	closed_make(tree);
	NEED(fchmodat(tree->fd, "t/closed_empty", 0, 0) == 0);
	NEED(fchmodat(tree->fd, "t/closed", 0, 0) == 0);
	NEED(fchmodat(tree->fd, "t/fixed", 0555, 0) == 0);
	return weft_run(remove_closed, arg, NULL);
}

START_TEST(removal_goes_on_after_errors_on_request)
{
	struct tree tree;

	tree_open(&tree);
	child_run(remove_closed_unprivileged, &tree);
	ck_assert(exists(&tree, "t/fixed/a") && !exists(&tree, "t/open"));
	ck_assert_int_eq(fchmodat(tree.fd, "t/closed", 0700, 0), 0);
	ck_assert_int_eq(fchmodat(tree.fd, "t/fixed", 0700, 0), 0);
	tree_close(&tree);
}
END_TEST

/* ---- Mount points ----------------------------------------------------- */

static int64_t remove_mount(void *arg)
{
	const struct tree *tree = arg;
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_remove_counts counts;

	opts.flags = WEFT_REMOVE_ONE_MOUNT | WEFT_REMOVE_GO_ON;
	opts.ret_counts = &counts;
	NEED(weft_remove_tree(tree->fd, "t", &opts) == -EXDEV);
	NEED(counts.failed == 1 && counts.files == 1);
	NEED(exists(tree, "t/mount/file") && !exists(tree, "t/file"));
	/* The mounted tree is emptied, but its root is busy. */
	opts.flags = WEFT_REMOVE_GO_ON;
	NEED(weft_remove_tree(tree->fd, "t", &opts) == -EBUSY);
	NEED(!exists(tree, "t/mount/file"));
	return 0;
}

/* Without openat2(2). */
static bool bind_mounts_are_told(void)
{
	struct statx status;

	return weft__statx(AT_FDCWD, "/", 0, 0, &status) == 0 &&
	       (status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT);
}

struct mounting {
	struct tree tree;
	bool refuses, binds;
};

static int64_t mount_and_remove(void *arg)
{
	struct mounting *mounting = arg;
	struct tree *tree = &mounting->tree;
	bool binds = mounting->binds;
	char path[80], home[80];

	snprintf(path, sizeof(path), "%s/t/mount", tree->path);
	snprintf(home, sizeof(home), "%s/home", tree->path);
	NEED(become_mount_owner());
	NEED(mount(binds ? home : "none", path, "tmpfs", binds ? MS_BIND : 0,
		   NULL) == 0);
	/* The old one is of the mounts that the parent has. */
	tree->fd = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree_file(tree, "t/mount/file");
	NEED(!mounting->refuses || child_may_refuse());
	return weft_run(remove_mount, tree, NULL);
}

START_TEST(mount_points_are_not_entered_on_request)
{
	struct mounting mounting = { .refuses = _i & 1, .binds = _i & 2 };
	struct tree *tree = &mounting.tree;

	if (_i == 3 && !test_needs(bind_mounts_are_told(),
				   "mount_points_are_not_entered_on_request",
				   "a kernel that tells mounts from others"))
		return;
	tree_open(tree);
	tree_dir(tree, "t/mount");
	tree_dir(tree, "home");
	tree_file(tree, "t/file");
	child_run(mount_and_remove, &mounting);
	tree_close(tree);
}
END_TEST

static int64_t remove_read_only(void *arg)
{
	const struct tree *tree = arg;
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_remove_counts counts;

	opts.flags = WEFT_REMOVE_GO_ON | WEFT_REMOVE_CONTENTS;
	opts.ret_counts = &counts;
	NEED(weft_remove_tree(tree->fd, "t/mount", &opts) == -EROFS);
	NEED(counts.failed != 0 && exists(tree, "t/mount/dir/file"));
	return 0;
}

static int64_t mount_read_only_and_remove(void *arg)
{
	struct tree *tree = arg;
	char path[80];

	snprintf(path, sizeof(path), "%s/t/mount", tree->path);
	NEED(become_mount_owner());
	NEED(mount("none", path, "tmpfs", 0, NULL) == 0);
	tree->fd = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree_dir(tree, "t/mount/dir");
	tree_file(tree, "t/mount/dir/file");
	NEED(mount("none", path, "none", MS_REMOUNT | MS_RDONLY, NULL) == 0);
	return weft_run(remove_read_only, tree, NULL);
}

START_TEST(read_only_files_are_erofs)
{
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "t/mount");
	child_run(mount_read_only_and_remove, &tree);
	tree_close(&tree);
}
END_TEST

/* ---- An older kernel -------------------------------------------------- */

static int64_t remove_nasty(void *arg)
{
	expect_removal(arg, 0);
	return 0;
}

START_TEST(removal_needs_no_openat2)
{
	struct tree tree, below;

	tree_open(&tree);
	tree_below(&tree, &below);
	tree_make_nasty(&below);
	close(below.fd);
	child_run_without_openat2(ENOSYS, remove_nasty, &tree);
	ck_assert(is_empty(&tree));
	tree_close(&tree);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/remove");
	TCase *tc = tcase_create("remove");

	tcase_set_timeout(tc, 120);
	io_add_test(tc, nasty_tree_is_removed);
	io_add_test(tc, random_trees_are_removed);
	io_add_test(tc, deep_tree_is_removed);
	io_add_test(tc, links_are_removed_and_not_followed);
	io_add_test(tc, wrong_removals_are_refused);
	if (test_needs(test_can(can_change_root), "root_directory_is_refused",
		       "a root directory of its own, which root may choose"))
		tcase_add_test(tc, root_directory_is_refused);
	tcase_add_test(tc, removal_needs_a_task);
	io_add_test(tc, report_ends_the_removal);
	if (test_needs(test_can(become_unprivileged),
		       "removal_goes_on_after_errors_on_request",
		       NEEDS_ANOTHER_USER))
		tcase_add_test(tc, removal_goes_on_after_errors_on_request);
	if (test_needs(test_can(become_mount_owner) &&
			       test_can(child_may_refuse),
		       "mount_points_are_not_entered_on_request",
		       NEEDS_MOUNTS ", and " NEEDS_REFUSED_CALLS))
		tcase_add_loop_test(tc, mount_points_are_not_entered_on_request,
				    0, 4);
	if (test_needs(test_can(become_mount_owner),
		       "read_only_files_are_erofs", NEEDS_MOUNTS))
		tcase_add_test(tc, read_only_files_are_erofs);
	if (test_needs(test_can(child_may_refuse), "removal_needs_no_openat2",
		       NEEDS_REFUSED_CALLS))
		tcase_add_test(tc, removal_needs_no_openat2);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

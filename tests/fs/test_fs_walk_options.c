/* SPDX-License-Identifier: MIT */
/*
 * Suite fs/walk options: the directories that weft_walk() enters, and errors.
 *
 * Pruned directories, the limit of depth, links that are followed, other
 * devices; visits that end the walk, calls that are refused, directories that
 * cannot be read.
 */
#include "tests/support/child_kit.h"
#include "tests/support/needs.h"
#include "tests/support/walk_kit.h"

/* ---- Entering --------------------------------------------------------- */

static int prune(const struct weft_walk_entry *entry, void *arg)
{
	(void)!list(entry, arg);
	return strcmp(entry->name, "pruned") == 0 ? WEFT_WALK_PRUNE : 0;
}

static void expect_lines(struct visits *visits, const char *const *lines,
			 size_t count_of_lines)
{
	struct tree_list expected = { 0 };

	for (size_t i = 0; i < count_of_lines; i++)
		tree_list_add(&expected, lines[i]);
	tree_lists_compare(&visits->entered, &expected);
	tree_list_free(&expected);
	visits_free(visits);
}

static void expect_left(struct visits *visits, const char *const *lines,
			size_t count_of_lines)
{
	struct tree_list expected = { 0 };

	for (size_t i = 0; i < count_of_lines; i++)
		tree_list_add(&expected, lines[i]);
	tree_lists_compare(&visits->left, &expected);
	tree_list_free(&expected);
	visits_free(visits);
}

IO_TEST(pruned_directories_are_not_entered)
{
	static const char *const lines[] = { "\t4", "a\t4", "a/pruned\t4",
					     "a/b\t8", "pruned\t8" };
	struct visits visits;
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "a/pruned/c");
	tree_file(&tree, "a/b");
	tree_file(&tree, "pruned");
	for (unsigned flags = 0; flags <= WEFT_WALK_SORTED;
	     flags += WEFT_WALK_SORTED) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = flags;
		visits = (struct visits){ .opts = &opts };
		ck_assert_int_eq(weft_walk(tree.fd, ".", prune, &visits, &opts),
				 0);
		expect_lines(&visits, lines, 5);
	}
	tree_close(&tree);
	return 0;
}

/* Directories are left whether they were entered or not. */
IO_TEST(directories_are_left_that_were_not_entered)
{
	static const char *const lines[] = { "\t4", "a\t4", "a/b\t4",
					     "pruned\t4" };
	struct visits visits;
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "a/b/c");
	tree_file(&tree, "a/f");
	tree_dir(&tree, "pruned/c");
	for (unsigned i = 0; i < 8; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = WEFT_WALK_POST | (i & 1 ? WEFT_WALK_SORTED : 0) |
			     (i & 2 ? WEFT_WALK_DIR_FD : 0);
		opts.status_mask = i & 4 ? STATX_SIZE : 0;
		opts.depth_max = 2;
		visits = (struct visits){ .opts = &opts };
		ck_assert_int_eq(weft_walk(tree.fd, ".", prune, &visits, &opts),
				 0);
		check_left(&visits);
		expect_left(&visits, lines, 4);
	}
	tree_close(&tree);
	return 0;
}

struct mover {
	int tree_fd;
	int without; /* visits without a descriptor */
};

static int move_away(const struct weft_walk_entry *entry, void *arg)
{
	struct mover *mover = arg;

	ck_assert_int_ge(entry->dir_fd, -1);
	mover->without += entry->dir_fd == -1;
	if (entry->event == WEFT_WALK_ENTRY && entry->depth == 15)
		ck_assert_int_eq(renameat(mover->tree_fd, "a", mover->tree_fd,
					  "moved"),
				 0);
	return 0;
}

/* Of directories that are opened again, and are not there. */
IO_TEST(visit_has_no_descriptor_of_what_was_moved)
{
	struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;
	struct mover mover = { 0 };
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a");
	tree_file(&tree, "a/z");
	tree_file(&tree, "a/a/z");
	mover.tree_fd = tree.fd;
	opts.flags = WEFT_WALK_SORTED | WEFT_WALK_DIR_FD | WEFT_WALK_POST;
	ck_assert_int_eq(weft_walk(tree.fd, ".", move_away, &mover, &opts), 0);
	ck_assert_int_gt(mover.without, 0);
	tree_close(&tree);
	return 0;
}

IO_TEST(depth_has_a_limit)
{
	static const char *const lines[] = { "\t4", "a\t4", "f\t8", "a/b\t4",
					     "a/f\t8" };
	static const size_t counts[] = { 1, 3, 5 };
	struct visits visits;
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "a/b/c");
	tree_file(&tree, "f");
	tree_file(&tree, "a/f");
	for (unsigned i = 0; i < 6; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = i % 2 ? WEFT_WALK_SORTED : 0;
		opts.depth_max = i / 2;
		ck_assert_int_eq(walk(&tree, &opts, &visits), 0);
		expect_lines(&visits, lines, counts[i / 2]);
	}
	tree_close(&tree);
	return 0;
}

/* As find -L, but that a directory that is its own ancestor is visited before
 * it is reported. */
IO_TEST(links_are_followed_on_request)
{
	static const char *const lines[] = {
		"\t4", "dir\t4", "dir/f\t8", "dir/up\t4", "to_dir\t4",
		"to_dir/f\t8", "to_dir/up\t4", "to_file\t8", "file\t8",
		"to_nothing\t10", "itself\t10",
	};
	static const char *const errors[] = { "dir/up\t40", "to_dir/up\t40" };
	struct visits visits;
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "dir");
	tree_file(&tree, "file");
	tree_file(&tree, "dir/f");
	ck_assert_int_eq(symlinkat("..", tree.fd, "dir/up"), 0);
	ck_assert_int_eq(symlinkat("dir", tree.fd, "to_dir"), 0);
	ck_assert_int_eq(symlinkat("file", tree.fd, "to_file"), 0);
	ck_assert_int_eq(symlinkat("nothing", tree.fd, "to_nothing"), 0);
	ck_assert_int_eq(symlinkat("itself", tree.fd, "itself"), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = WEFT_WALK_FOLLOW | (i % 2 ? WEFT_WALK_SORTED : 0);
		opts.status_mask = i / 2 ? STATX_SIZE : 0;
		ck_assert_int_eq(walk(&tree, &opts, &visits), 0);
		tree_list_sort(&visits.errors);
		ck_assert_uint_eq(visits.errors.count, 2);
		for (int j = 0; ELOOP == 40 && j < 2; j++)
			ck_assert_str_eq(visits.errors.texts[j], errors[j]);
		expect_lines(&visits, lines, 11);
	}
	tree_close(&tree);
	return 0;
}

static int expect_no_proc(const struct weft_walk_entry *entry, void *arg)
{
	(void)arg;
	EXPECT(strncmp(entry->path, "proc/", 5) != 0);
	return 0;
}

static bool has_proc(void)
{
	struct stat root, proc;

	return stat("/", &root) == 0 && stat("/proc", &proc) == 0 &&
	       root.st_dev != proc.st_dev;
}

IO_TEST(other_devices_are_not_entered)
{
	for (unsigned i = 0; i < 2; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = WEFT_WALK_ONE_DEVICE |
			     (i ? WEFT_WALK_SORTED : 0);
		opts.depth_max = 2;
		ck_assert_int_eq(weft_walk(AT_FDCWD, "/", expect_no_proc, NULL,
					   &opts),
				 0);
	}
	return 0;
}

/* ---- Errors ----------------------------------------------------------- */

static int stop_at(const struct weft_walk_entry *entry, void *arg)
{
	return strcmp(entry->name, arg) == 0 ? -EXDEV : 0;
}

IO_TEST(visit_ends_the_walk)
{
	struct tree tree;

	tree_open(&tree);
	tree_make_nasty(&tree);
	for (unsigned i = 0; i < 8; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = (i & 1 ? WEFT_WALK_SORTED : 0) |
			     (i & 2 ? WEFT_WALK_DIR_FD : 0) |
			     (i & 4 ? WEFT_WALK_POST : 0);
		ck_assert_int_eq(weft_walk(tree.fd, ".", stop_at,
					   (char[]){ "bottom" }, &opts),
				 -EXDEV);
		ck_assert_int_eq(weft_walk(tree.fd, ".", stop_at,
					   (char[]){ "." }, &opts),
				 -EXDEV);
	}
	tree_close(&tree);
	return 0;
}

IO_TEST(wrong_calls_are_refused)
{
	struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;
	struct visits visits = { .opts = &opts };
	struct tree tree;

	tree_open(&tree);
	tree_file(&tree, "file");
	ck_assert_int_eq(weft_walk(tree.fd, NULL, list, &visits, NULL),
			 -EFAULT);
	ck_assert_int_eq(weft_walk(tree.fd, ".", NULL, &visits, NULL), -EINVAL);
	opts.size = 0;
	ck_assert_int_eq(weft_walk(tree.fd, ".", list, &visits, &opts),
			 -EINVAL);
	opts.size = sizeof(opts);
	opts.flags = 1u << 31;
	ck_assert_int_eq(weft_walk(tree.fd, ".", list, &visits, &opts),
			 -EINVAL);
	ck_assert_int_eq(weft_walk(-1, ".", list, &visits, NULL), -EBADF);
	ck_assert_int_eq(weft_walk(tree.fd, "", list, &visits, NULL), -ENOENT);
	ck_assert_int_eq(weft_walk(tree.fd, "no", list, &visits, NULL),
			 -ENOENT);
	ck_assert_int_eq(weft_walk(tree.fd, "file/", list, &visits, NULL),
			 -ENOTDIR);
	ck_assert_uint_eq(visits.entered.count + visits.errors.count, 0);
	tree_close(&tree);
	return 0;
}

START_TEST(walk_needs_a_task)
{
	ck_assert_int_eq(weft_walk(AT_FDCWD, ".", expect_no_proc, NULL, NULL),
			 -EPERM);
}
END_TEST

/* The directory, which one user made, is closed to another. */
static int64_t walk_closed(void *arg)
{
	const struct tree *tree = arg;

	for (unsigned i = 0; i < 2; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;
		struct visits visits;

		opts.flags = i ? WEFT_WALK_SORTED : 0;
		if (walk(tree, &opts, &visits) != 0 ||
		    visits.errors.count != 1 || visits.entered.count != 5 ||
		    strcmp(visits.errors.texts[0], "closed\t13") != 0)
			return -1;
		visits_free(&visits);
		if (weft_walk(tree->fd, "closed", list, &visits, &opts) !=
		    -EACCES)
			return -1;
	}
	return 0;
}

static int64_t walk_unprivileged(void *arg)
{
	NEED(become_unprivileged());
	return weft_run(walk_closed, arg, NULL);
}

START_TEST(closed_directories_are_reported)
{
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "closed/a");
	tree_dir(&tree, "open/b");
	tree_file(&tree, "open/f");
	ck_assert_int_eq(fchmod(tree.fd, 0755), 0);
	ck_assert_int_eq(fchmodat(tree.fd, "closed", 0, 0), 0);
	child_run(walk_unprivileged, &tree);
	ck_assert_int_eq(fchmodat(tree.fd, "closed", 0700, 0), 0);
	tree_close(&tree);
}
END_TEST

/* Removes files of the directory before they are looked at. */
static int vanish(const struct weft_walk_entry *entry, void *arg)
{
	const struct tree *tree = ((struct tree **)arg)[0];
	struct visits *visits = ((void **)arg)[1];

	if (entry->depth == 0)
		return 0;
	if (entry->event == WEFT_WALK_ENTRY && entry->type == DT_DIR)
		EXPECT(unlinkat(tree->fd, entry->path, AT_REMOVEDIR) == 0);
	return list(entry, visits);
}

IO_TEST(directory_that_vanishes_is_reported)
{
	struct tree tree;

	tree_open(&tree);
	for (unsigned i = 0; i < 2; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;
		struct visits visits = { .opts = &opts };
		void *args[] = { &tree, &visits };

		opts.flags = i ? WEFT_WALK_SORTED : 0;
		tree_dir(&tree, "gone");
		ck_assert_int_eq(weft_walk(tree.fd, ".", vanish, args, &opts),
				 0);
		ck_assert_uint_eq(visits.entered.count, 1);
		ck_assert_uint_eq(visits.errors.count, 1);
		ck_assert_str_eq(visits.errors.texts[0], "gone\t2");
		visits_free(&visits);
	}
	tree_close(&tree);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("fs/walk options");
	TCase *tc = tcase_create("options");

	tcase_set_timeout(tc, 120);
	io_add_test(tc, pruned_directories_are_not_entered);
	io_add_test(tc, directories_are_left_that_were_not_entered);
	io_add_test(tc, visit_has_no_descriptor_of_what_was_moved);
	io_add_test(tc, depth_has_a_limit);
	io_add_test(tc, links_are_followed_on_request);
	if (test_needs(has_proc(), "other_devices_are_not_entered",
		       "a mounted /proc"))
		io_add_test(tc, other_devices_are_not_entered);
	io_add_test(tc, visit_ends_the_walk);
	io_add_test(tc, wrong_calls_are_refused);
	tcase_add_test(tc, walk_needs_a_task);
	if (test_needs(test_can(become_unprivileged),
		       "closed_directories_are_reported", NEEDS_ANOTHER_USER))
		tcase_add_test(tc, closed_directories_are_reported);
	io_add_test(tc, directory_that_vanishes_is_reported);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

/* SPDX-License-Identifier: MIT */
/*
 * Suite fs/remove races: removals that are cancelled, and trees that change
 * meanwhile.
 *
 * A removal is cancelled at random points, and a second one removes the rest.
 * Threads swap a directory for a link, or make files, while it runs; or another
 * removal does the same work.
 */
#include "tests/support/child_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/tree_swap.h"

static int report(const char *path, int error, void *arg)
{
	(void)arg;
	return error || strlen(path) % 7 ? 0 : weft_yield();
}

static int64_t remove_some(void *arg)
{
	const struct tree *tree = *(struct tree **)arg;
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;
	unsigned choice = race_random();

	opts.tasks = choice & 3;
	opts.flags = choice & 4 ? WEFT_REMOVE_GO_ON : 0;
	if (choice & 8)
		opts.report = report;
	return weft_remove_tree(tree->fd, "t", &opts);
}

/* ---- Cancelling ------------------------------------------------------- */

IO_TEST(removal_may_be_cancelled_at_any_point)
{
	struct tree tree, *the_tree = &tree;
	int before;

	tree_open(&tree);
	before = fds_open();
	for (int i = 0; i < race_repeats(10); i++) {
		struct tree below;
		int64_t r;

		tree_below(&tree, &below);
		tree_make_random(&below, (unsigned)i, 1000);
		tree_make_deep(&below, "d", 50);
		close(below.fd);
		WEFT_SCOPE(scope, &r) {
			ck_assert_int_eq(WEFT_GO(scope, remove_some, the_tree),
					 0);
			ck_assert_int_eq(weft_sleep(race_random() % 2000 *
						    1000),
					 0);
			weft_scope_cancel(scope);
		}
		ck_assert(r == 0 || r == -ECANCELED);
		ck_assert_int_le(fds_open(), before);
		WEFT_WITHIN(WEFT_US(race_random() % 2000))
			r = remove_some(&the_tree);
		ck_assert(r == 0 || r == -ETIMEDOUT || r == -ENOENT);
		/* The rest is removed as any other tree. */
		r = remove_some(&the_tree);
		ck_assert(r == 0 || r == -ENOENT);
		ck_assert_int_lt(faccessat(tree.fd, "t", F_OK, 0), 0);
	}
	tree_close(&tree);
	return 0;
}

struct cancelling {
	const struct tree *tree;
	struct weft_scope *scope;
	int reports;
};

/* Cancels the removal, and waits until it is told. */
static int report_cancels(const char *path, int error, void *arg)
{
	struct cancelling *cancelling = arg;
	int r = 0;

	(void)path, (void)error;
	if (++cancelling->reports == 5)
		weft_scope_cancel(cancelling->scope);
	while (cancelling->reports >= 5 && r == 0)
		r = weft_yield();
	return r;
}

static int64_t remove_cancelled(void *arg)
{
	struct cancelling *cancelling = *(struct cancelling **)arg;
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;

	opts.report = report_cancels;
	opts.arg = cancelling;
	return weft_remove_tree(cancelling->tree->fd, "t", &opts);
}

IO_TEST(cancelled_removal_ends_and_is_done_again)
{
	struct tree tree;
	struct cancelling cancelling = { &tree, NULL, 0 };
	struct cancelling *the_cancelling = &cancelling;
	int64_t r;
	int before;

	tree_open(&tree);
	before = fds_open();
	tree_make_deep(&tree, "t", 50);
	WEFT_SCOPE(scope, &r) {
		cancelling.scope = scope;
		ck_assert_int_eq(WEFT_GO(scope, remove_cancelled,
					 the_cancelling),
				 0);
	}
	ck_assert_int_eq(r, -ECANCELED);
	ck_assert_int_eq(cancelling.reports, 5);
	ck_assert_int_le(fds_open(), before);
	/* The job may have removed all before it was reported. */
	r = weft_remove_tree(tree.fd, "t", NULL);
	ck_assert(r == 0 || r == -ENOENT);
	ck_assert_int_lt(faccessat(tree.fd, "t", F_OK, 0), 0);
	tree_close(&tree);
	return 0;
}

/* ---- Trees that change ------------------------------------------------ */

/* All outside of the tree stays whole, wherever the swapper is. */
IO_TEST(removal_does_not_follow_a_swapped_link)
{
	struct tree_list before = { 0 }, after = { 0 };
	struct tree_changer swapper;
	struct tree tree, outside, below;

	tree_open(&outside);
	swap_make(&outside, ".", "secret");
	tree_list(outside.fd, ".", &before);
	tree_open(&tree);
	for (int i = 0; i < race_repeats(80); i++) {
		struct tree *the_tree = &tree;
		int64_t r;

		tree_below(&tree, &below);
		swap_make(&below, "swap", "file");
		ck_assert_int_eq(symlinkat(outside.path, below.fd, "link"), 0);
		changer_start(&swapper, &below, swapper_main);
		while (weft__load(&swapper.turns, relaxed) < 3)
			ck_assert_int_eq(weft_yield(), 0);
		r = remove_some(&the_tree);
		changer_end(&swapper);
		/* Whenever it is looked at, it may be the other one. */
		ck_assert_msg(r == 0 || r == -ENOTEMPTY || r == -EISDIR, "%d",
			      (int)r);
		tree_empty(below.fd);
		close(below.fd);
		(void)!unlinkat(tree.fd, "t", AT_REMOVEDIR);
	}
	tree_list(outside.fd, ".", &after);
	tree_lists_compare_order(&after, &before);
	tree_list_free(&before);
	tree_list_free(&after);
	tree_close(&tree);
	tree_close(&outside);
	return 0;
}

START_TEST(removal_without_openat2_does_not_follow_it)
{
	child_run_without_openat2(
		ENOSYS, removal_does_not_follow_a_swapped_link_task, NULL);
}
END_TEST

/* Makes files in the tree, and in a directory of it. */
static void *maker_main(void *arg)
{
	struct tree_changer *changer = arg;
	int tree_fd = changer->tree->fd, fd;
	char name[32];

	for (unsigned i = 0; changer_goes_on(changer) && i < 200; i++) {
		snprintf(name, sizeof(name), "%sf%u", i % 2 ? "d/" : "", i);
		(void)!mkdirat(tree_fd, "d", 0755);
		fd = openat(tree_fd, name, O_CREAT | O_WRONLY, 0644);
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

/* A removal ends, though files appear meanwhile. */
IO_TEST(files_that_appear_are_removed_or_reported)
{
	struct tree tree, below, *the_tree = &tree;
	struct tree_changer maker;

	tree_open(&tree);
	for (int i = 0; i < race_repeats(20); i++) {
		int64_t r;

		tree_below(&tree, &below);
		tree_dir(&below, "d");
		changer_start(&maker, &below, maker_main);
		r = remove_some(&the_tree);
		changer_end(&maker);
		close(below.fd);
		ck_assert(r == 0 || r == -ENOTEMPTY);
		r = remove_some(&the_tree);
		ck_assert(r == 0 || r == -ENOENT);
	}
	tree_close(&tree);
	return 0;
}

/* A file appears in each directory directly before that is removed. */
static weft__atomic(bool) files_appear;

int __real_weft__unlinkat(int dir_fd, const char *path, int flags);
int __wrap_weft__unlinkat(int dir_fd, const char *path, int flags);

int __wrap_weft__unlinkat(int dir_fd, const char *path, int flags)
{
	char name[64];

	/* relaxed: set before the removal begins. */
	if ((flags & AT_REMOVEDIR) && weft__load(&files_appear, relaxed)) {
		snprintf(name, sizeof(name), "%.40s/more", path);
		(void)!mknodat(dir_fd, name, S_IFREG | 0600, 0);
	}
	return __real_weft__unlinkat(dir_fd, path, flags);
}

IO_TEST(directory_that_is_never_empty_is_enotempty)
{
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "t/d");
	tree_file(&tree, "t/d/file");
	/* relaxed: as above. */
	weft__store(&files_appear, true, relaxed);
	ck_assert_int_eq(weft_remove_tree(tree.fd, "t", NULL), -ENOTEMPTY);
	weft__store(&files_appear, false, relaxed); /* relaxed: as above */
	ck_assert_int_eq(weft_remove_tree(tree.fd, "t", NULL), 0);
	tree_close(&tree);
	return 0;
}

/* Two removals of one tree: what the other one takes counts as vanished. */
IO_TEST(two_removals_share_a_tree)
{
	struct tree tree, below, *the_tree = &tree;

	tree_open(&tree);
	for (int i = 0; i < race_repeats(10); i++) {
		int64_t r;

		tree_below(&tree, &below);
		tree_make_random(&below, (unsigned)i, 1000);
		close(below.fd);
		WEFT_SCOPE(scope, &r) {
			ck_assert_int_eq(WEFT_GO(scope, remove_some, the_tree),
					 0);
			ck_assert_int_eq(WEFT_GO(scope, remove_some, the_tree),
					 0);
		}
		ck_assert(r == 0 || r == -ENOENT);
		ck_assert_int_lt(faccessat(tree.fd, "t", F_OK, 0), 0);
	}
	tree_close(&tree);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("fs/remove races");
	TCase *tc = tcase_create("races");

	tcase_set_timeout(tc, 300);
	io_add_test(tc, removal_may_be_cancelled_at_any_point);
	io_add_test(tc, cancelled_removal_ends_and_is_done_again);
	if (test_needs(swap_works(), "removal_does_not_follow_a_swapped_link",
		       "a kernel that exchanges names"))
		io_add_test(tc, removal_does_not_follow_a_swapped_link);
	if (test_needs(swap_works() && test_can(child_may_refuse),
		       "removal_without_openat2_does_not_follow_it",
		       "a kernel that exchanges names, and filters of calls"))
		tcase_add_test(tc, removal_without_openat2_does_not_follow_it);
	io_add_test(tc, files_that_appear_are_removed_or_reported);
	io_add_test(tc, directory_that_is_never_empty_is_enotempty);
	io_add_test(tc, two_removals_share_a_tree);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

/* SPDX-License-Identifier: MIT */
/*
 * Suite fs/walk: the files that weft_walk() visits.
 *
 * The visits of a walk are compared with a list that was made without weft
 * (tests/support/tree_kit.h): of a tree with names and files of all kinds, of
 * random ones, of a large directory, and of deep ones, with each choice of
 * options, and without openat2(2).
 */
#include "tests/support/child_kit.h"
#include "tests/support/needs.h"
#include "tests/support/walk_kit.h"

/* ---- Whole trees ------------------------------------------------------ */

IO_TEST(nasty_tree_is_visited_in_full)
{
	struct tree tree;

	tree_open(&tree);
	tree_make_nasty(&tree);
	expect_walks(&tree);
	tree_close(&tree);
	return 0;
}

IO_TEST(random_trees_are_visited_in_full)
{
	const char *seed = getenv("WEFT_TEST_SEED");
	unsigned first = seed ? (unsigned)atoi(seed) : 1;
	struct tree tree;

	for (unsigned i = first; i < first + (seed ? 1 : 2); i++) {
		printf("seed %u\n", i);
		tree_open(&tree);
		tree_make_random(&tree, i, 600);
		expect_walks(&tree);
		tree_close(&tree);
	}
	return 0;
}

/* More than a batch holds, so that it is read in several pieces, with
 * directories found in each. */
IO_TEST(large_directory_is_visited_in_full)
{
	enum { FILES = 1500 };
	char name[200];
	struct tree tree;

	tree_open(&tree);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%0150d", i);
		if (i % 60 == 0) {
			tree_dir(&tree, name);
			snprintf(name, sizeof(name), "%0150d/file", i);
		}
		tree_file(&tree, name);
	}
	expect_walks(&tree);
	tree_close(&tree);
	return 0;
}

static int count(const struct weft_walk_entry *entry, void *arg)
{
	EXPECT(entry->event != WEFT_WALK_ERROR);
	/* relaxed: read when the walk is over. */
	weft__add((weft__atomic(int) *)arg, 1, relaxed);
	return 0;
}

/* A path of 2000 levels is longer than the kernel takes. */
IO_TEST(deep_tree_needs_few_descriptors)
{
	enum { LEVELS = 2000, DESCRIPTORS = 64 };
	static const unsigned flags[] = {
		0, WEFT_WALK_DIR_FD | WEFT_WALK_POST,
		WEFT_WALK_SORTED | WEFT_WALK_DIR_FD | WEFT_WALK_POST,
	};
	struct rlimit old;
	struct tree tree;

	tree_open(&tree);
	tree_make_deep(&tree, "dd", LEVELS);
	old = limit_set(RLIMIT_NOFILE, DESCRIPTORS);
	for (unsigned i = 0; i < 3; i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;
		weft__atomic(int) visits = 0;
		int expected = LEVELS + 2;

		opts.flags = flags[i];
		opts.tasks = 2;
		if (opts.flags & WEFT_WALK_POST)
			expected += LEVELS + 1;
		ck_assert_int_eq(weft_walk(tree.fd, ".", count, &visits, &opts),
				 0);
		ck_assert_int_eq(weft__load(&visits, relaxed), expected);
	}
	limit_reset(RLIMIT_NOFILE, old);
	/* tree_close() needs a stack that grows with the levels. */
	ck_assert_int_eq(weft_remove_tree(tree.fd, "dd", NULL), 0);
	tree_close(&tree);
	return 0;
}

/* The root is a file or a link: the only visit. */
IO_TEST(root_may_be_any_file)
{
	static const char *const roots[] = { "file", "links/to_dir",
					     "links/to_nothing", "fifo" };
	struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;
	struct visits visits = { .opts = &opts };
	struct tree tree;

	tree_open(&tree);
	tree_make_nasty(&tree);
	opts.flags = WEFT_WALK_DIR_FD;
	opts.status_mask = STATX_INO;
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(weft_walk(tree.fd, roots[i], list, &visits,
					   &opts),
				 0);
	ck_assert_uint_eq(visits.entered.count, 4);
	ck_assert_str_eq(visits.entered.texts[0], "\t8");
	ck_assert_str_eq(visits.entered.texts[1], "\t10");
	ck_assert_str_eq(visits.entered.texts[2], "\t10");
	ck_assert_str_eq(visits.entered.texts[3], "\t1");
	visits_free(&visits);
	/* A slash at the end names the directory itself. */
	opts.flags |= WEFT_WALK_SORTED;
	ck_assert_int_eq(weft_walk(tree.fd, "links/to_dir/", list, &visits,
				   &opts),
			 0);
	ck_assert_uint_eq(visits.entered.count, 3);
	visits_free(&visits);
	tree_close(&tree);
	return 0;
}

/* ---- An older kernel -------------------------------------------------- */

static int64_t walk_nasty(void *arg)
{
	expect_walks(arg);
	return 0;
}

START_TEST(walk_needs_no_openat2)
{
	struct tree tree;

	tree_open(&tree);
	tree_make_nasty(&tree);
	child_run_without_openat2(_i ? EPERM : ENOSYS, walk_nasty, &tree);
	tree_close(&tree);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/walk");
	TCase *tc = tcase_create("walk");

	tcase_set_timeout(tc, 120);
	io_add_test(tc, nasty_tree_is_visited_in_full);
	io_add_test(tc, random_trees_are_visited_in_full);
	io_add_test(tc, large_directory_is_visited_in_full);
	io_add_test(tc, deep_tree_needs_few_descriptors);
	io_add_test(tc, root_may_be_any_file);
	if (test_needs(test_can(child_may_refuse), "walk_needs_no_openat2",
		       NEEDS_REFUSED_CALLS))
		tcase_add_loop_test(tc, walk_needs_no_openat2, 0, 2);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

/* SPDX-License-Identifier: MIT */
/*
 * Suite fs/walk races: walks that are cancelled, and trees that change
 * meanwhile.
 *
 * Walks with all choices of options are cancelled at random points.  Threads
 * swap a directory for a link, or make and remove files beside others, while
 * they run.
 */
#include "io/os/statx.h"
#include "tests/support/child_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/tree_swap.h"

static void opts_choose(struct weft_walk_opts *opts, unsigned choice)
{
	*opts = (struct weft_walk_opts)WEFT_WALK_OPTS_INIT;
	opts->flags = (choice & 1 ? WEFT_WALK_SORTED : 0) |
		      (choice & 2 ? WEFT_WALK_DIR_FD : 0) |
		      (choice & 4 ? WEFT_WALK_POST : 0);
	opts->status_mask = choice & 8 ? STATX_SIZE : 0;
	opts->tasks = choice >> 4 & 3;
}

/* ---- Cancelling ------------------------------------------------------- */

/* Some visits suspend. */
static int visit_slowly(const struct weft_walk_entry *entry, void *arg)
{
	(void)arg;
	return entry->path_bytes % 7 ? 0 : weft_yield();
}

static int64_t walk_some(void *arg)
{
	const struct tree *tree = *(struct tree **)arg;
	struct weft_walk_opts opts;

	opts_choose(&opts, race_random());
	return weft_walk(tree->fd, ".", visit_slowly, NULL, &opts);
}

IO_TEST(walk_may_be_cancelled_at_any_point)
{
	struct tree tree, *the_tree = &tree;
	int before;

	tree_open(&tree);
	tree_make_nasty(&tree);
	before = fds_open();
	for (int i = 0; i < race_repeats(60); i++) {
		int64_t r = 0;

		WEFT_WITHIN(WEFT_US(race_random() % 4000))
			r = walk_some(&the_tree);
		ck_assert_msg(r == 0 || r == -ETIMEDOUT, "%d", (int)r);
		WEFT_SCOPE(scope, &r) {
			ck_assert_int_eq(WEFT_GO(scope, walk_some, the_tree),
					 0);
			ck_assert_int_eq(weft_sleep(race_random() % 3000 *
						    1000),
					 0);
			weft_scope_cancel(scope);
		}
		ck_assert(r == 0 || r == -ECANCELED);
		ck_assert_int_le(fds_open(), before);
	}
	tree_close(&tree);
	return 0;
}

/* ---- Trees that change ------------------------------------------------ */

static int no_secret(const struct weft_walk_entry *entry, void *arg)
{
	(void)arg;
	EXPECT(strcmp(entry->name, "secret") != 0);
	EXPECT(entry->event != WEFT_WALK_ERROR || entry->error == -ENOENT ||
	       entry->error == -ENOTDIR || entry->error == -ELOOP);
	return 0;
}

IO_TEST(walk_does_not_follow_a_swapped_link)
{
	struct tree_changer swapper;
	struct tree tree, outside;

	tree_open(&outside);
	swap_make(&outside, ".", "secret");
	tree_open(&tree);
	swap_make(&tree, "swap", "file");
	ck_assert_int_eq(symlinkat(outside.path, tree.fd, "link"), 0);
	changer_start(&swapper, &tree, swapper_main);
	for (int i = 0; i < race_repeats(400); i++) {
		struct weft_walk_opts opts;

		opts_choose(&opts, (unsigned)i);
		ck_assert_int_eq(weft_walk(tree.fd, ".", no_secret, NULL,
					   &opts),
				 0);
	}
	changer_end(&swapper);
	tree_close(&tree);
	tree_close(&outside);
	return 0;
}

START_TEST(walk_without_openat2_does_not_follow_it)
{
	child_run_without_openat2(
		ENOSYS, walk_does_not_follow_a_swapped_link_task, NULL);
}
END_TEST

/* Makes and removes files and directories beside others that stay. */
static void *churner_main(void *arg)
{
	struct tree_changer *changer = arg;
	int fd = changer->tree->fd, other;

	while (changer_goes_on(changer)) {
		(void)!mkdirat(fd, "stay/come", 0755);
		(void)!mkdirat(fd, "stay/come/below", 0755);
		other = openat(fd, "stay/come/file", O_CREAT | O_WRONLY, 0644);
		if (other >= 0)
			close(other);
		(void)!unlinkat(fd, "stay/come/file", 0);
		(void)!unlinkat(fd, "stay/come/below", AT_REMOVEDIR);
		(void)!unlinkat(fd, "stay/come", AT_REMOVEDIR);
	}
	return NULL;
}

static int count_stays(const struct weft_walk_entry *entry, void *arg)
{
	EXPECT(entry->event != WEFT_WALK_ERROR || entry->error == -ENOENT);
	if (entry->event == WEFT_WALK_ENTRY &&
	    strncmp(entry->name, "stays", 5) == 0)
		/* relaxed: read when the walk is over. */
		weft__add((weft__atomic(int) *)arg, 1, relaxed);
	return 0;
}

IO_TEST(files_that_stay_are_visited_once)
{
	enum { FILES = 200 };
	struct tree_changer churner;
	char name[32];
	struct tree tree;

	tree_open(&tree);
	tree_dir(&tree, "stay");
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "stay/stays%d", i);
		tree_file(&tree, name);
	}
	changer_start(&churner, &tree, churner_main);
	for (int i = 0; i < race_repeats(100); i++) {
		weft__atomic(int) count = 0;
		struct weft_walk_opts opts;

		opts_choose(&opts, (unsigned)i);
		ck_assert_int_eq(weft_walk(tree.fd, ".", count_stays, &count,
					   &opts),
				 0);
		ck_assert_int_eq(weft__load(&count, relaxed), FILES);
	}
	changer_end(&churner);
	tree_close(&tree);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("fs/walk races");
	TCase *tc = tcase_create("races");

	tcase_set_timeout(tc, 300);
	io_add_test(tc, walk_may_be_cancelled_at_any_point);
	if (test_needs(swap_works(), "walk_does_not_follow_a_swapped_link",
		       "a kernel that exchanges names"))
		io_add_test(tc, walk_does_not_follow_a_swapped_link);
	if (test_needs(swap_works() && test_can(child_may_refuse),
		       "walk_without_openat2_does_not_follow_it",
		       "a kernel that exchanges names, and filters of calls"))
		tcase_add_test(tc, walk_without_openat2_does_not_follow_it);
	io_add_test(tc, files_that_stay_are_visited_once);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

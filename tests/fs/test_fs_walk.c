/* SPDX-License-Identifier: MIT */
/*
 * Suite fs/walk: weft_walk().
 *
 * What is visited is compared with a list that was made without weft
 * (tests/support/tree_kit.h).
 */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_setup.h"
#include "tests/support/tree_kit.h"

/* ---- Listing by a walk ------------------------------------------------ */

struct visits {
	struct tree_list entered, left, errors;
	const struct weft_walk_opts *opts;
	weft__atomic(int) inside; /* visits that run */
	int most_inside;
};

static void visits_free(struct visits *visits)
{
	tree_list_free(&visits->entered);
	tree_list_free(&visits->left);
	tree_list_free(&visits->errors);
}

/* dir_fd and name are those of the file. */
static void check_fd(const struct weft_walk_entry *entry)
{
	struct stat st;

	EXPECT(fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) ==
	       0);
	EXPECT(IFTODT(st.st_mode) == entry->type);
	EXPECT(!entry->depth || !entry->inode || st.st_ino == entry->inode);
	EXPECT(!entry->status || entry->status->stx_ino == st.st_ino);
}

static void check_entry(const struct weft_walk_entry *entry,
			const struct weft_walk_opts *opts)
{
	unsigned slashes = 0;

	for (const char *c = entry->path; *c; c++)
		slashes += *c == '/';
	EXPECT(entry->depth == slashes + (*entry->path != 0));
	EXPECT(entry->path_bytes == strlen(entry->path));
	EXPECT(entry->name_bytes == strlen(entry->name));
	EXPECT(entry->event != WEFT_WALK_ENTRY ||
	       !entry->status == !opts->status_mask);
	if (entry->depth)
		EXPECT(strcmp(entry->name, entry->path + entry->path_bytes -
						   entry->name_bytes) == 0);
	if (opts->flags & WEFT_WALK_DIR_FD)
		check_fd(entry);
	else
		EXPECT(entry->dir_fd == -1);
}

static int list(const struct weft_walk_entry *entry, void *arg)
{
	struct visits *visits = arg;
	size_t bytes = entry->path_bytes + 16;
	char *line = malloc(bytes);

	/* relaxed: compared with itself. */
	int inside = weft__add(&visits->inside, 1, relaxed) + 1;

	EXPECT(line);
	tree_line(line, bytes, entry->path, entry->event == WEFT_WALK_ERROR ?
						    -entry->error :
						    entry->type);
	EXPECT(!entry->error == (entry->event != WEFT_WALK_ERROR));
	switch (entry->event) {
	case WEFT_WALK_ENTRY:
		check_entry(entry, visits->opts);
		tree_list_add(&visits->entered, line);
		break;
	case WEFT_WALK_LEAVE:
		check_entry(entry, visits->opts);
		EXPECT(entry->type == DT_DIR);
		tree_list_add(&visits->left, line);
		tree_list_add(&visits->entered, "left");
		break;
	case WEFT_WALK_ERROR:
		tree_list_add(&visits->errors, line);
		break;
	}
	if (visits->opts->tasks == 1 ||
	    (visits->opts->flags & WEFT_WALK_SORTED))
		EXPECT(inside == 1);
	weft__sub(&visits->inside, 1, relaxed);
	free(line);
	return 0;
}

static int walk(const struct tree *tree, const struct weft_walk_opts *opts,
		struct visits *ret_visits)
{
	*ret_visits = (struct visits){ .opts = opts };
	return weft_walk(tree->fd, ".", list, ret_visits, opts);
}

/* After its LEAVE a directory has no more visits; the list of all visits has
 * "left" for each. */
static void check_left(struct visits *visits)
{
	struct tree_list dirs = { 0 }, entries = { 0 };

	for (size_t i = 0; i < visits->entered.count; i++) {
		const char *line = visits->entered.texts[i];
		const char *type = strrchr(line, '\t');

		if (!type)
			continue;
		tree_list_add(&entries, line);
		if (atoi(type + 1) == DT_DIR)
			tree_list_add(&dirs, line);
	}
	ck_assert_uint_eq(visits->entered.count,
			  entries.count + visits->left.count);
	tree_list_free(&visits->entered);
	visits->entered = entries;
	if (visits->opts->flags & WEFT_WALK_POST)
		tree_lists_compare(&visits->left, &dirs);
	else
		ck_assert_uint_eq(visits->left.count, 0);
	tree_list_free(&dirs);
}

/* Are the directories below a directory left before it? */
static void check_left_order(const struct visits *visits)
{
	const struct tree_list *left = &visits->left;

	for (size_t i = 0; i < left->count; i++) {
		size_t bytes = (size_t)(strrchr(left->texts[i], '\t') -
					left->texts[i]);

		for (size_t j = i + 1; bytes && j < left->count; j++)
			EXPECT(strncmp(left->texts[i], left->texts[j], bytes) !=
				       0 ||
			       left->texts[j][bytes] != '/');
	}
}

/* A walk with these options visits what the tree holds. */
static void expect_walk(const struct tree *tree,
			const struct weft_walk_opts *opts)
{
	struct tree_list expected = { 0 };
	struct visits visits;

	tree_list(tree->fd, ".", &expected);
	ck_assert_int_eq(walk(tree, opts, &visits), 0);
	ck_assert_uint_eq(visits.errors.count, 0);
	check_left_order(&visits);
	check_left(&visits);
	if (opts->flags & WEFT_WALK_SORTED)
		tree_lists_compare_order(&visits.entered, &expected);
	else
		tree_lists_compare(&visits.entered, &expected);
	visits_free(&visits);
	tree_list_free(&expected);
}

static void expect_walks(const struct tree *tree)
{
	static const unsigned flags[] = {
		0, WEFT_WALK_SORTED, WEFT_WALK_SORTED | WEFT_WALK_POST,
		WEFT_WALK_DIR_FD, WEFT_WALK_POST,
		WEFT_WALK_DIR_FD | WEFT_WALK_POST,
		WEFT_WALK_DIR_FD | WEFT_WALK_POST | WEFT_WALK_SORTED,
		WEFT_WALK_ONE_DEVICE,
	};

	for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = flags[i];
		opts.tasks = i % 3;
		opts.status_mask = i == 1 || i > 3 ? STATX_INO : 0;
		expect_walk(tree, &opts);
	}
}

/* ---- What is visited -------------------------------------------------- */

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
	struct rlimit limit, few;
	struct tree tree;

	tree_open(&tree);
	tree_make_deep(&tree, "dd", LEVELS);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = DESCRIPTORS;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
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
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
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

/* ---- What is entered -------------------------------------------------- */

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
	ck_assert_int_eq(weft_walk(AT_FDCWD, ".", count, NULL, NULL), -EPERM);
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

START_TEST(closed_directories_are_reported)
{
	struct tree tree;
	int status;
	pid_t child;

	tree_open(&tree);
	tree_dir(&tree, "closed/a");
	tree_dir(&tree, "open/b");
	tree_file(&tree, "open/f");
	ck_assert_int_eq(fchmod(tree.fd, 0755), 0);
	ck_assert_int_eq(fchmodat(tree.fd, "closed", 0, 0), 0);
	child = fork();
	if (child == 0)
		_exit((geteuid() != 0 || become_another_user()) &&
				      weft_run(walk_closed, &tree, NULL) == 0 ?
			      0 :
			      1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
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

/* ---- An older kernel -------------------------------------------------- */

static int64_t walk_nasty(void *arg)
{
	expect_walks(arg);
	return 0;
}

static bool can_refuse(void)
{
	return refuse_calls((const unsigned[]){ SYS_openat2 }, 1, ENOSYS);
}

START_TEST(walk_needs_no_openat2)
{
	struct tree tree;
	int status;
	pid_t child;

	tree_open(&tree);
	tree_make_nasty(&tree);
	child = fork();
	if (child == 0) {
		refuse_call(SYS_openat2, _i ? EPERM : ENOSYS);
		_exit(weft_run(walk_nasty, &tree, NULL) == 0 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
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
	io_add_test(tc, pruned_directories_are_not_entered);
	io_add_test(tc, depth_has_a_limit);
	io_add_test(tc, links_are_followed_on_request);
	if (test_needs(has_proc(), "other_devices_are_not_entered",
		       "a mounted /proc"))
		io_add_test(tc, other_devices_are_not_entered);
	io_add_test(tc, visit_ends_the_walk);
	io_add_test(tc, wrong_calls_are_refused);
	tcase_add_test(tc, walk_needs_a_task);
	if (test_needs(geteuid() != 0 || test_can(become_another_user),
		       "closed_directories_are_reported", NEEDS_ANOTHER_USER))
		tcase_add_test(tc, closed_directories_are_reported);
	io_add_test(tc, directory_that_vanishes_is_reported);
	if (test_needs(test_can(can_refuse), "walk_needs_no_openat2",
		       "filters of system calls (seccomp)"))
		tcase_add_loop_test(tc, walk_needs_no_openat2, 0, 2);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

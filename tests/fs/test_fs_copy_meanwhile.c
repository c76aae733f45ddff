/* SPDX-License-Identifier: MIT */
/*
 * Copies while something happens to the original or the copy: files that are
 * swapped, moved away or grow, and directories with names that have no room.
 */
#include <dirent.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include "fs/copy_bytes.h"
#include "fs/copy_meta.h"
#include "fs/copy_runner.h"
#include "tests/support/copied_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

static mode_t rights_of(const char *path)
{
	struct stat status;

	ck_assert_int_eq(lstat(path, &status), 0);
	return status.st_mode & 07777;
}

/* ---- Names --------------------------------------------------------------- */

static int let_pass(const char *path, int error, void *arg)
{
	(void)path, (void)error, (void)arg;
	return 0;
}

/* Gives the runner one name, as getdents64(2) does. */
static void name_give(struct weft__copy_runner *runner, size_t bytes, int type)
{
	enum { NAME_AT = 19 };
	unsigned short all = (unsigned short)((NAME_AT + bytes + 8) & ~7u);

	memset(runner->names, 0, all);
	memcpy(runner->names + 16, &all, sizeof(all));
	runner->names[18] = (char)type;
	memset(runner->names + NAME_AT, 'n', bytes);
	runner->names_at = 0;
	runner->names_bytes = all;
}

/* Some file systems have names of more bytes than NAME_MAX, which those of the
 * copy may not take. */
START_TEST(name_that_is_too_long_is_reported)
{
	static const size_t lengths[] = { NAME_MAX + 1, 765, PATH_MAX - 1 };
	static const int types[] = { DT_REG, DT_DIR, DT_UNKNOWN };
	struct weft__copy_tree tree = { .to_parent = -1 };
	struct weft__copy_runner *runner = calloc(1, sizeof(*runner));

	ck_assert_ptr_nonnull(runner);
	tree.opts.on_error = let_pass;
	tree.root = weft__copy_node_new(&tree, NULL, "root");
	ck_assert_ptr_nonnull(tree.root);
	runner->tree = &tree;
	runner->node = tree.root;
	for (int i = 0; i < 9; i++) {
		name_give(runner, lengths[i / 3], types[i % 3]);
		ck_assert_int_eq(weft__copy_runner_step(runner), REPORTS);
		ck_assert_int_eq(runner->report.error, -ENAMETOOLONG);
		ck_assert_uint_eq(strlen(runner->report.name), lengths[i / 3]);
		weft__copy_node_unref(&tree, runner->report.node);
	}
	weft__copy_nodes_free(&tree);
	free(runner);
}
END_TEST

/* ---- Attributes ---------------------------------------------------------- */

static int meta_copy(int dir, const char *to, mode_t mode, uint32_t flags)
{
	static char buffer[WEFT__COPY_BUFFER_BYTES];
	struct stat status = { .st_mode = S_IFIFO | mode };

	return weft__copy_meta_at((struct weft__copy_name){ dir, "origin" },
				  (struct weft__copy_name){ dir, to }, &status,
				  flags, buffer);
}

/* Another process has put a link in the place of a FIFO that was made. */
START_TEST(attributes_do_not_go_through_a_swapped_link)
{
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	copied_file(dir, "victim", 1, 1);
	ck_assert_int_eq(chmod("victim", 0640), 0);
	ck_assert_int_eq(symlink("victim", "link"), 0);
	ck_assert_int_eq(mkfifo("origin", 0600), 0);
	(void)test_needs(
		lsetxattr("origin", "trusted.weft", "x", 1, 0) == 0,
		"attributes_do_not_go_through_a_swapped_link: extended ones",
		NEEDS_XATTRS_OF_LINKS);
	ck_assert_int_lt(meta_copy(dir, "link", 04777, WEFT_COPY_MODE), 0);
	ck_assert_int_lt(meta_copy(dir, "link", 04777, WEFT_COPY_XATTRS), 0);
	ck_assert_uint_eq(rights_of("victim"), 0640);
	ck_assert_int_lt(getxattr("victim", "trusted.weft", NULL, 0), 0);
	/* The flag for extended attributes implies rights. */
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(meta_copy(dir, "fifo", 0753, WEFT_COPY_XATTRS), 0);
	ck_assert_uint_eq(rights_of("fifo"), 0753);
	close(dir);
}
END_TEST

/* That is not taken for a lack of /proc. */
START_TEST(original_that_is_gone_is_an_error)
{
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(meta_copy(dir, "fifo", 0600, WEFT_COPY_XATTRS),
			 -ENOENT);
	close(dir);
}
END_TEST

IO_TEST(owner_alone_leaves_the_usual_rights)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	copied_broad("from", 1, 1);
	ck_assert_int_eq(chmod("from/dir-0", 0775), 0);
	copied_file(AT_FDCWD, "from/file", 1, 1);
	ck_assert_int_eq(chmod("from/file", 0776), 0);
	opts.flags = WEFT_COPY_OWNER;
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, NULL), 0);
	ck_assert_uint_eq(rights_of("to/dir-0"), 0755);
	ck_assert_uint_eq(rights_of("to/file"), 0754);
	ck_assert_int_eq(weft_copy_file("from/file", "file", &opts, NULL), 0);
	ck_assert_uint_eq(rights_of("file"), 0754);
	return 0;
}

/* ---- Contents ------------------------------------------------------------ */

/* Beyond its size at first, before the copy comes to look for data. */
START_TEST(sparse_file_that_grows_is_copied_as_it_was)
{
	static char buffer[WEFT__COPY_BUFFER_BYTES];
	enum { BYTES = 1 << 20 };
	struct weft__copy_bytes bytes;
	struct stat status;
	int from = open("from", O_RDWR | O_CREAT | O_CLOEXEC, 0600), r;
	int to = open("to", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	ck_assert(from >= 0 && to >= 0);
	ck_assert_int_eq(ftruncate(from, BYTES), 0);
	ck_assert_int_eq(fstat(from, &status), 0);
	weft__copy_bytes_begin(&bytes, from, to, &status, UINT64_MAX, buffer);
	ck_assert_int_eq(pwrite(from, "new", 3, 10 * BYTES), 3);
	while ((r = weft__copy_bytes_step(&bytes)) > 0)
		;
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(fstat(to, &status), 0);
	ck_assert_int_eq(status.st_size, BYTES);
	close(from);
	close(to);
}
END_TEST

/* ---- Trees --------------------------------------------------------------- */

enum { DEPTH = 60, DESCRIPTORS = 70 };

static void deep_make(const char *path)
{
	int dir = copied_dir(AT_FDCWD, path, 0755);

	for (int i = 0; i < DEPTH; i++) {
		int sub = copied_dir(dir, "d", 0755);

		close(dir);
		dir = sub;
	}
	copied_file(dir, "file", 1, 1);
	close(dir);
}

static void move_away(const char *path, void *arg)
{
	int *copied = arg;

	(void)path;
	if ((*copied)++ == 0)
		ck_assert_int_eq(rename("from/d", "moved"), 0);
}

static void copy_moved(void)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	struct rlimit old;
	int copied = 0;

	opts.on_copied = move_away;
	opts.on_error = let_pass;
	opts.arg = &copied;
	opts.jobs_max = 1;
	old = limit_set(RLIMIT_NOFILE, DESCRIPTORS);
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, NULL), 0);
	limit_reset(RLIMIT_NOFILE, old);
	ck_assert_int_gt(copied, 0);
}

/* Directories whose descriptors were closed meanwhile cannot be opened again.
 * Their copies get their names all the same. */
IO_TEST(tree_that_is_moved_away_leaves_no_temporary_names)
{
	for (int i = 0; i < 2; i++) {
		deep_make("from");
		ck_assert_int_eq(mkdir("to", 0755), 0);
		/* The new directory is not below the root itself. */
		if (i == 1)
			ck_assert_int_eq(mkdir("to/d", 0755), 0);
		copy_moved();
		ck_assert_uint_eq(copied_count_names("to", ".weft-copy-"), 0);
		ck_assert_uint_eq(copied_count_names("to/d", ".weft-copy-"), 0);
		ck_assert(copied_is_there("to/d/d"));
		copied_remove("from");
		copied_remove("to");
		copied_remove("moved");
	}
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("fs/copy_meanwhile");
	TCase *tc = tcase_create("meanwhile");

	tcase_add_checked_fixture(tc, copied_setup_quick, copied_teardown);
	tcase_add_test(tc, name_that_is_too_long_is_reported);
	tcase_add_test(tc, attributes_do_not_go_through_a_swapped_link);
	tcase_add_test(tc, original_that_is_gone_is_an_error);
	io_add_test(tc, owner_alone_leaves_the_usual_rights);
	tcase_add_test(tc, sparse_file_that_grows_is_copied_as_it_was);
	io_add_test(tc, tree_that_is_moved_away_leaves_no_temporary_names);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

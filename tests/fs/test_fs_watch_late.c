/* SPDX-License-Identifier: MIT */
/*
 * Events that are older than the tree that a watch knows: a scan has seen what
 * they tell.  And which watches of the kernel a watch has.
 *
 * The test puts an overflow into the input.  The scan comes when that is
 * decoded: it sees what was changed before, and events that tell so follow.
 */
#include "fs/watch.h"
#include "io/os/syscall.h"
#include "tests/support/fs_watch_kit.h"

enum { KINDS = WEFT_FS_CREATED | WEFT_FS_REMOVED | WEFT_FS_MOVED };

/* The names that the events have told so far. */
static struct fs_names told;

static void lose(void)
{
	struct inotify_event *put =
		(void *)(watch->input + watch->input_bytes);

	*put = (struct inotify_event){ .wd = -1, .mask = IN_Q_OVERFLOW };
	watch->input_bytes += sizeof(*put);
}

static void expect_lost(void)
{
	ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
	ck_assert_uint_eq(event.kind, WEFT_FS_LOST);
}

/* The kernel's events are lost indeed. */
static void lose_all(void)
{
	while (weft__syscall_is_readable(watch->fd))
		ck_assert_int_gt(read(watch->fd, watch->entries,
				      sizeof(watch->entries)),
				 0);
	watch->input_at = watch->input_bytes = 0;
	lose();
}

/* The directories of the list are watched under their names. */
static void expect_watched(void)
{
	for (int i = 0, count = told.count; i < count; i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/x", told.path[i]);
		if (mkdir(fs_path(path), 0700) == 0)
			expect_event(WEFT_FS_CREATED, path, NULL);
	}
	expect_quiet();
}

/* The names are those of the disk after all events. */
static void expect_all(void)
{
	names_follow(&told);
	expect_names(&told);
	expect_watched();
	names_clear(&told);
}

/* How many the kernel has. */
static int watches_count(void)
{
	char path[64], line[256];
	int count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d",
		 weft_fs_watch_fd(watch));
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		count += strncmp(line, "inotify ", 8) == 0;
	fclose(file);
	return count;
}

/* ---- Names that mean another thing by now -------------------------------- */

/* The directory has the name of the file. */
IO_TEST(file_was_moved_before_a_directory_took_its_name)
{
	tree_watch(KINDS);
	fs_make("n");
	expect_event(WEFT_FS_CREATED, "n", NULL);
	lose();
	fs_rename("n", "m");
	fs_mkdir("n");
	fs_make("n/f");
	expect_all();
	return tree_end();
}

IO_TEST(file_was_moved_on_before_a_directory_took_its_name)
{
	tree_watch(KINDS);
	fs_make("a");
	expect_event(WEFT_FS_CREATED, "a", NULL);
	lose();
	fs_rename("a", "n");
	fs_rename("n", "z");
	fs_mkdir("n");
	expect_lost();
	expect_event(WEFT_FS_MOVED, "n", "a");
	expect_event(WEFT_FS_MOVED, "z", "n");
	expect_event(WEFT_FS_CREATED, "n", NULL);
	expect_quiet();
	return tree_end();
}

/* Of both names. */
IO_TEST(file_was_moved_on_before_directories_took_its_names)
{
	tree_watch(KINDS);
	fs_make("n");
	expect_event(WEFT_FS_CREATED, "n", NULL);
	lose();
	fs_rename("n", "m");
	fs_rename("m", "z");
	fs_mkdir("n");
	fs_mkdir("m");
	expect_lost();
	expect_event(WEFT_FS_REMOVED, "n", NULL);
	expect_event(WEFT_FS_CREATED, "m", NULL);
	expect_event(WEFT_FS_MOVED, "z", "m");
	expect_event(WEFT_FS_CREATED, "n", NULL);
	expect_event(WEFT_FS_CREATED, "m", NULL);
	expect_quiet();
	return tree_end();
}

/* The one that has its old name now was never moved. */
IO_TEST(directory_was_moved_before_another_took_its_name)
{
	tree_watch(KINDS);
	fs_mkdir("d");
	fs_make("d/f");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	expect_event(WEFT_FS_CREATED, "d/f", NULL);
	lose();
	fs_rename("d", "e");
	fs_mkdir("d");
	while (weft_fs_watch_try_next(watch, &event) == 0)
		ck_assert_uint_ne(event.kind, WEFT_FS_MOVED);
	fs_make("d/g");
	expect_event(WEFT_FS_CREATED, "d/g", NULL);
	fs_make("e/g");
	expect_event(WEFT_FS_CREATED, "e/g", NULL);
	return tree_end();
}

/* The directory that has the new name by now holds the place from where the
 * other was moved. */
IO_TEST(directory_was_moved_before_its_parent_went_beneath_it)
{
	tree_watch(KINDS);
	fs_mkdir("p");
	fs_mkdir("p/s");
	fs_mkdir("p/s/d");
	names_follow(&told);
	fs_rename("p/s/d", "n");
	fs_rename("n", "q");
	fs_mkdir("n");
	fs_rename("p/s", "n/s");
	fs_mkdir("n/s/d");
	/* As a scan of the root does. */
	ck_assert_int_eq(weft__watch_bind(watch, watch->roots->dir, "n"), 1);
	expect_all();
	return tree_end();
}

/* Its watch goes with the one that had its name. */
IO_TEST(directory_takes_the_name_of_its_parent)
{
	tree_watch(KINDS);
	fs_mkdir("d");
	fs_mkdir("d/e");
	names_follow(&told);
	fs_rename("d/e", "t");
	ck_assert_int_eq(rmdir(fs_path("d")), 0);
	fs_rename("t", "d");
	lose_all();
	expect_all();
	return tree_end();
}

/* A look that comes later, with nothing else to tell of it. */
IO_TEST(directory_that_a_look_finds_is_reported)
{
	tree_watch(KINDS);
	expect_quiet();
	fs_mkdir("d");
	fs_make("d/a");
	lose_all();
	watch->input_bytes = 0;
	weft__watch_dir_later(watch, watch->roots->dir, WEFT__SCAN_CHECK);
	expect_event(WEFT_FS_CREATED, "d", NULL);
	expect_event(WEFT_FS_CREATED, "d/a", NULL);
	expect_quiet();
	return tree_end();
}

/* ---- Roots and kinds ----------------------------------------------------- */

static void expect_of_root(int root, unsigned kind, const char *path)
{
	ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
	ck_assert_str_eq(event.path, path);
	ck_assert_uint_eq(event.kind, kind);
	ck_assert_int_eq(event.root, root);
}

IO_TEST(move_between_roots_is_a_removal_and_a_creation)
{
	fs_root_make();
	fs_mkdir("0");
	fs_mkdir("0/d");
	fs_make("0/a");
	fs_mkdir("1");
	watch_begin(fs_path("0"), KINDS, WEFT_FS_TREE);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_path("1"), KINDS,
					   WEFT_FS_TREE),
			 1);
	fs_rename("0/a", "1/b");
	expect_of_root(0, WEFT_FS_REMOVED, "a");
	expect_of_root(1, WEFT_FS_CREATED, "b");
	fs_rename("0/d", "1/e");
	expect_of_root(0, WEFT_FS_REMOVED, "d");
	expect_of_root(1, WEFT_FS_CREATED, "e");
	fs_make("1/e/f");
	expect_of_root(1, WEFT_FS_CREATED, "e/f");
	expect_quiet();
	return tree_end();
}

/* The kernel tells it and its parent. */
IO_TEST(status_of_a_directory_is_reported_once)
{
	tree_watch(WEFT_FS_ALL);
	fs_mkdir("d");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	expect_quiet();
	ck_assert_int_eq(chmod(fs_path("d"), 0750), 0);
	expect_event(WEFT_FS_STATUS, "d", NULL);
	ck_assert(event.is_directory);
	expect_quiet();
	return tree_end();
}

/* They share a watch of the kernel's. */
IO_TEST(add_that_is_refused_takes_no_kinds_from_another)
{
	tree_watch(WEFT_FS_CHANGED);
	fs_make("a");
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_root, WEFT_FS_CREATED, 0),
			 -EEXIST);
	fs_write("a", "x");
	expect_event(WEFT_FS_CHANGED, "a", NULL);
	expect_quiet();
	return tree_end();
}

IO_TEST(file_without_a_name_is_not_reported)
{
	int fd;

	tree_watch(WEFT_FS_CHANGED | WEFT_FS_REMOVED);
	fs_make("a");
	fd = open(fs_path("a"), O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(fs_path("a")), 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
	expect_event(WEFT_FS_REMOVED, "a", NULL);
	expect_quiet();
	return tree_end();
}

/* ---- The watches of the kernel ------------------------------------------- */

/* Each directory of the tree has one. */
IO_TEST(watches_are_given_back)
{
	char outside[64], path[80];

	tree_watch(KINDS);
	fs_mkdir("d");
	fs_mkdir("d/e");
	expect_all();
	ck_assert_int_eq(rmdir(fs_path("d/e/x")), 0);
	ck_assert_int_eq(rmdir(fs_path("d/x")), 0);
	snprintf(outside, sizeof(outside), "%s/weft-test-XXXXXX", quiet_dir());
	ck_assert_ptr_nonnull(mkdtemp(outside));
	snprintf(path, sizeof(path), "%s/d", outside);
	ck_assert_int_eq(rename(fs_path("d"), path), 0);
	while (weft_fs_watch_try_next(watch, &event) == 0)
		ck_assert_uint_eq(event.kind, WEFT_FS_REMOVED);
	ck_assert_int_eq(watches_count(), 1);
	ck_assert_uint_eq(watch->dirs, 1);
	ck_assert_int_eq(rename(path, fs_path("d")), 0);
	ck_assert_int_eq(rmdir(outside), 0);
	expect_event(WEFT_FS_CREATED, "d", NULL);
	expect_event(WEFT_FS_CREATED, "d/e", NULL);
	expect_quiet();
	ck_assert_int_eq(watches_count(), 3);
	return tree_end();
}

/* A look finds another directory in its place, which the tree does not know. */
IO_TEST(watch_of_a_stranger_is_given_back)
{
	struct weft__watch_dir *dir;

	tree_watch(KINDS);
	fs_mkdir("d");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	expect_quiet();
	dir = weft__watch_child(watch, watch->roots->dir, "d");
	fs_rename("d", "e");
	fs_mkdir("d");
	ck_assert_int_eq(weft__watch_verify(watch, dir), -EEXIST);
	ck_assert_int_eq(watches_count(), 2);
	return tree_end();
}

/* Also if the events that told so are lost. */
IO_TEST(directory_that_is_gone_is_forgotten)
{
	tree_watch(WEFT_FS_CREATED);
	fs_mkdir("d");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	ck_assert_int_eq(rmdir(fs_path("d")), 0);
	lose_all();
	expect_lost();
	expect_quiet();
	ck_assert_uint_eq(watch->dirs, 1);
	return tree_end();
}

int main(void)
{
	Suite *suite = suite_create("fs/watch_late");
	TCase *tc = tcase_create("late");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, file_was_moved_before_a_directory_took_its_name);
	io_add_test(tc, file_was_moved_on_before_a_directory_took_its_name);
	io_add_test(tc, file_was_moved_on_before_directories_took_its_names);
	io_add_test(tc, directory_was_moved_before_another_took_its_name);
	io_add_test(tc,
		    directory_was_moved_before_its_parent_went_beneath_it);
	io_add_test(tc, directory_takes_the_name_of_its_parent);
	io_add_test(tc, directory_that_a_look_finds_is_reported);
	io_add_test(tc, move_between_roots_is_a_removal_and_a_creation);
	io_add_test(tc, status_of_a_directory_is_reported_once);
	io_add_test(tc, add_that_is_refused_takes_no_kinds_from_another);
	io_add_test(tc, file_without_a_name_is_not_reported);
	io_add_test(tc, watches_are_given_back);
	io_add_test(tc, watch_of_a_stranger_is_given_back);
	io_add_test(tc, directory_that_is_gone_is_forgotten);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

/* SPDX-License-Identifier: MIT */
/*
 * The watch of a file by itself: it ends when the file loses its name, whoever
 * has the file open and whatever other names it has.
 */
#include <sys/mount.h>

#include "tests/support/fs_watch_kit.h"
#include "tests/support/needs.h"
#include "tests/support/pool_kit.h"

/* Happens before the next watch of the kernel. */
static enum meanwhile { NOTHING, REPLACED, REFUSED } meanwhile;

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	enum meanwhile now = meanwhile;

	meanwhile = NOTHING;
	if (now == REPLACED)
		fs_rename("b", "a");
	if (now != REFUSED)
		return __real_inotify_add_watch(fd, path, mask);
	errno = EACCES;
	return -1;
}

/* A process has it open, so that its end is no event. */
IO_TEST(file_that_is_replaced_while_it_is_added_is_gone)
{
	int fd;

	fs_root_make();
	fs_make("a");
	fs_make("b");
	fd = open(fs_path("a"), O_RDONLY | O_CLOEXEC);
	meanwhile = REPLACED;
	watch_begin(fs_path("a"), WEFT_FS_CHANGED, 0);
	expect_event(WEFT_FS_GONE, "", NULL);
	ck_assert_int_eq(event.error, -ENOENT);
	expect_quiet();
	/* The new one. */
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_path("a"),
					   WEFT_FS_CHANGED, 0),
			 1);
	expect_quiet();
	fs_write("a", "x");
	ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
	ck_assert_uint_eq(event.kind, WEFT_FS_CHANGED);
	ck_assert_int_eq(close(fd), 0);
	return tree_end();
}

/* As one that the user may not read. */
IO_TEST(replaced_by_one_that_cannot_be_watched_it_is_gone)
{
	int fd;

	fs_root_make();
	fs_make("a");
	fs_make("b");
	fd = open(fs_path("a"), O_RDONLY | O_CLOEXEC);
	watch_begin(fs_path("a"), WEFT_FS_CHANGED, 0);
	fs_write("a", "x");
	expect_event(WEFT_FS_CHANGED, "", NULL);
	meanwhile = REFUSED;
	ck_assert_int_eq(chmod(fs_path("a"), 0640), 0);
	expect_quiet();
	ck_assert_int_eq(meanwhile, NOTHING);
	meanwhile = REFUSED;
	fs_rename("b", "a");
	expect_event(WEFT_FS_GONE, "", NULL);
	ck_assert_int_eq(close(fd), 0);
	return tree_end();
}

/* The kernel reports the end of a file when its last name and its last
 * descriptor are gone. */
IO_TEST(file_that_loses_its_name_is_gone)
{
	int fd;

	fs_root_make();
	for (int way = 0; way < 3; way++) {
		fs_make("a");
		fs_make("b");
		fd = open(fs_path("a"), O_RDONLY | O_CLOEXEC);
		watch_begin(fs_path("a"), WEFT_FS_CHANGED, 0);
		ck_assert_int_eq(chmod(fs_path("a"), 0640), 0);
		expect_quiet();
		if (way == 0)
			ck_assert_int_eq(unlink(fs_path("a")), 0);
		else if (way == 1)
			fs_rename("b", "a");
		else
			fs_rename("a", "c");
		expect_event(WEFT_FS_GONE, "", NULL);
		ck_assert_int_eq(event.error, way == 2 ? -ESTALE : -ENOENT);
		expect_quiet();
		ck_assert_int_eq(close(fd), 0);
		ck_assert_int_eq(weft_fs_watch_close(watch), 0);
	}
	fs_root_drop();
	return 0;
}

IO_TEST(file_that_has_another_name_goes_on)
{
	fs_root_make();
	fs_make("a");
	watch_begin(fs_path("a"), WEFT_FS_CHANGED | WEFT_FS_STATUS, 0);
	ck_assert_int_eq(link(fs_path("a"), fs_path("b")), 0);
	expect_event(WEFT_FS_STATUS, "", NULL);
	ck_assert_int_eq(unlink(fs_path("b")), 0);
	expect_event(WEFT_FS_STATUS, "", NULL);
	expect_quiet();
	fs_write("a", "x");
	expect_event(WEFT_FS_CHANGED, "", NULL);
	ck_assert_int_eq(chmod(fs_path("a"), 0640), 0);
	fs_rename("a", "b");
	expect_event(WEFT_FS_STATUS, "", NULL);
	/* It was moved before the mode's change was looked at. */
	expect_event(WEFT_FS_GONE, "", NULL);
	ck_assert_int_eq(event.error, -ESTALE);
	return tree_end();
}

static int64_t gone_next(void *arg)
{
	(void)arg;
	expect_event(WEFT_FS_GONE, "", NULL);
	ck_assert_int_eq(event.error, -ESTALE);
	return 0;
}

/* The change of the mode has been read, and the look waits for a thread. */
static int64_t move_before_the_look(void *arg)
{
	(void)arg;
	fs_root_make();
	fs_make("a");
	watch_begin(fs_path("a"), WEFT_FS_CHANGED, 0);
	ck_assert_int_eq(chmod(fs_path("a"), 0640), 0);
	WEFT_SUPERVISE(scope) {
		pool_take(scope);
		ck_assert_int_eq(weft_go(scope, gone_next, NULL, 0), 0);
		wait_until(pool_is_asked());
		fs_rename("a", "b");
		pool_free();
	}
	return tree_end();
}

START_TEST(file_that_moves_before_it_is_looked_for_is_moved)
{
	pool_run(move_before_the_look, 1 + (unsigned)_i);
}
END_TEST

/* ---- A file whose number changes ----------------------------------------- */

static bool changes_number(const char *name)
{
	struct stat before, after;

	return stat(fs_path(name), &before) == 0 &&
	       chmod(fs_path(name), 0640) == 0 &&
	       stat(fs_path(name), &after) == 0 &&
	       (before.st_ino != after.st_ino || before.st_dev != after.st_dev);
}

static bool linked_make(const char *name, const char *other)
{
	fs_make(name);
	return link(fs_path(name), fs_path(other)) == 0;
}

/* One that breaks a file of several names when it copies it. */
static bool mount_overlay(void)
{
	char options[512];

	if (!become_mount_owner() ||
	    mount("none", fs_path("low"), "tmpfs", 0, "size=64k") < 0 ||
	    mount("none", fs_path("top"), "tmpfs", 0, "size=64k") < 0 ||
	    !linked_make("low/a", "low/a2") || !linked_make("low/b", "low/b2"))
		return false;
	fs_mkdir("top/up");
	fs_mkdir("top/work");
	snprintf(options, sizeof(options),
		 "index=off,lowerdir=%s/low,upperdir=%s/top/up,"
		 "workdir=%s/top/work",
		 fs_root, fs_root, fs_root);
	return mount("overlay", fs_path("all"), "overlay", 0, options) == 0 &&
	       changes_number("all/b");
}

/* It is copied into the upper layer, and is the same file. */
static int64_t change_the_number(void *arg)
{
	(void)arg;
	watch_begin(fs_path("all/a"), WEFT_FS_STATUS, 0);
	ck_assert(changes_number("all/a"));
	expect_event(WEFT_FS_STATUS, "", NULL);
	expect_quiet();
	ck_assert_int_eq(chmod(fs_path("all/a"), 0600), 0);
	expect_event(WEFT_FS_STATUS, "", NULL);
	expect_quiet();
	ck_assert_int_eq(unlink(fs_path("all/a")), 0);
	do
		ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
	while (event.kind == WEFT_FS_STATUS);
	ck_assert_uint_eq(event.kind, WEFT_FS_GONE);
	return weft_fs_watch_close(watch);
}

START_TEST(file_whose_number_changes_goes_on)
{
	fs_root_make();
	fs_mkdir("low");
	fs_mkdir("top");
	fs_mkdir("all");
	if (test_needs(test_can(mount_overlay) && mount_overlay(),
		       "file_whose_number_changes_goes_on",
		       NEEDS_MOUNTS ", of overlays")) {
		io_run(change_the_number, NULL, 1);
		ck_assert_int_eq(umount(fs_path("all")), 0);
		ck_assert_int_eq(umount(fs_path("top")), 0);
		ck_assert_int_eq(umount(fs_path("low")), 0);
	}
	fs_root_drop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/watch_file");
	TCase *tc = tcase_create("file");

	io_add_test(tc, file_that_loses_its_name_is_gone);
	io_add_test(tc, file_that_is_replaced_while_it_is_added_is_gone);
	io_add_test(tc, replaced_by_one_that_cannot_be_watched_it_is_gone);
	io_add_test(tc, file_that_has_another_name_goes_on);
	io_add_test(tc, file_that_moves_before_it_is_looked_for_is_moved);
	tcase_add_test(tc, file_whose_number_changes_goes_on);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

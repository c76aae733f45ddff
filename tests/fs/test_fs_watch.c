/* SPDX-License-Identifier: MIT */
/*
 * Watches of files, directories and trees.
 *
 * Most tests apply the events to a list of names, as a program would, and
 * compare it with the disk.
 */
#include <limits.h>
#include <sys/mount.h>

#include "fs/watch.h"
#include "tests/support/child_kit.h"
#include "tests/support/fs_watch_kit.h"
#include "tests/support/io_future.h"
#include "tests/support/needs.h"
#include "tests/support/pool_kit.h"

/* ---- Single events ------------------------------------------------------- */

IO_TEST(each_change_is_reported_with_its_path)
{
	tree_watch(WEFT_FS_ALL);
	expect_quiet();
	fs_make("a");
	expect_event(WEFT_FS_CREATED, "a", NULL);
	ck_assert(!event.is_directory);
	expect_event(WEFT_FS_CLOSED, "a", NULL);
	fs_write("a", "x");
	expect_event(WEFT_FS_CHANGED, "a", NULL);
	expect_event(WEFT_FS_CLOSED, "a", NULL);
	ck_assert_int_eq(chmod(fs_path("a"), 0640), 0);
	expect_event(WEFT_FS_STATUS, "a", NULL);
	fs_rename("a", "b\xff\n");
	expect_event(WEFT_FS_MOVED, "b\xff\n", "a");
	ck_assert_int_eq(unlink(fs_path("b\xff\n")), 0);
	expect_event(WEFT_FS_REMOVED, "b\xff\n", NULL);
	fs_mkdir("d");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	ck_assert(event.is_directory);
	ck_assert_int_eq(rmdir(fs_path("d")), 0);
	expect_event(WEFT_FS_REMOVED, "d", NULL);
	expect_quiet();
	return tree_end();
}

IO_TEST(only_the_kinds_that_were_asked_for_are_reported)
{
	tree_watch(WEFT_FS_CREATED | WEFT_FS_REMOVED);
	fs_mkdir("d");
	fs_write("d/a", "x");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	expect_event(WEFT_FS_CREATED, "d/a", NULL);
	fs_rename("d", "e");
	expect_event(WEFT_FS_REMOVED, "d", NULL);
	expect_event(WEFT_FS_CREATED, "e", NULL);
	fs_make("e/b");
	expect_event(WEFT_FS_CREATED, "e/b", NULL);
	expect_quiet();
	return tree_end();
}

IO_TEST(directory_without_its_tree_reports_its_entries_alone)
{
	fs_root_make();
	fs_mkdir("d");
	watch_begin(fs_root, WEFT_FS_ALL, 0);
	fs_make("d/a");
	fs_rename("d", "e");
	expect_event(WEFT_FS_MOVED, "e", "d");
	fs_make("e/b");
	fs_mkdir("f");
	expect_event(WEFT_FS_CREATED, "f", NULL);
	expect_quiet();
	return tree_end();
}

IO_TEST(file_is_watched_by_itself)
{
	fs_root_make();
	fs_make("a");
	watch_begin(fs_path("a"), WEFT_FS_CHANGED, 0);
	fs_write("a", "x");
	expect_event(WEFT_FS_CHANGED, "", NULL);
	fs_rename("a", "b");
	expect_event(WEFT_FS_GONE, "", NULL);
	ck_assert_int_eq(event.error, -ESTALE);
	expect_quiet();
	return tree_end();
}

/* ---- Trees --------------------------------------------------------------- */

IO_TEST(moved_directory_works_under_its_new_name)
{
	tree_watch(WEFT_FS_CREATED | WEFT_FS_REMOVED | WEFT_FS_MOVED);
	fs_mkdir("d");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	fs_mkdir("d/deep");
	expect_event(WEFT_FS_CREATED, "d/deep", NULL);
	fs_mkdir("to");
	expect_event(WEFT_FS_CREATED, "to", NULL);
	fs_rename("d", "to/e");
	expect_event(WEFT_FS_MOVED, "to/e", "d");
	fs_make("to/e/deep/a");
	expect_event(WEFT_FS_CREATED, "to/e/deep/a", NULL);
	/* Over an empty directory, which the tree has too. */
	fs_mkdir("d");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	fs_rename("to/e", "d");
	expect_event(WEFT_FS_MOVED, "d", "to/e");
	fs_make("d/deep/b");
	expect_event(WEFT_FS_CREATED, "d/deep/b", NULL);
	expect_quiet();
	return tree_end();
}

IO_TEST(what_was_made_before_the_watch_stood_is_reported)
{
	static struct fs_names told;

	tree_watch(WEFT_FS_ALL);
	fs_mkdir("1");
	fs_mkdir("1/2");
	fs_mkdir("1/2/3");
	fs_make("1/2/3/a");
	fs_make("1/b");
	fs_rename("1", "one");
	names_follow(&told);
	expect_names(&told);
	fs_make("one/2/3/c");
	expect_event(WEFT_FS_CREATED, "one/2/3/c", NULL);
	names_clear(&told);
	return tree_end();
}

/* No event comes from what is no longer in the tree. */
IO_TEST(directory_that_leaves_the_tree_is_not_watched)
{
	char outside[64], path[80];

	tree_watch(WEFT_FS_ALL);
	fs_mkdir("d");
	expect_event(WEFT_FS_CREATED, "d", NULL);
	expect_quiet();
	snprintf(outside, sizeof(outside), "%s/weft-test-XXXXXX", quiet_dir());
	ck_assert_ptr_nonnull(mkdtemp(outside));
	snprintf(path, sizeof(path), "%s/d", outside);
	ck_assert_int_eq(rename(fs_path("d"), path), 0);
	expect_event(WEFT_FS_REMOVED, "d", NULL);
	snprintf(path, sizeof(path), "%s/d/a", outside);
	ck_assert_int_eq(mknod(path, S_IFREG | 0600, 0), 0);
	expect_quiet();
	/* And back, with what came in meanwhile. */
	snprintf(path, sizeof(path), "%s/d", outside);
	ck_assert_int_eq(rename(path, fs_path("again")), 0);
	expect_event(WEFT_FS_CREATED, "again", NULL);
	expect_event(WEFT_FS_CREATED, "again/a", NULL);
	expect_quiet();
	ck_assert_int_eq(rmdir(outside), 0);
	return tree_end();
}

/* Some 50 levels of 200 bytes: longer than PATH_MAX. */
IO_TEST(tree_deeper_than_a_path_may_be_long_is_watched)
{
	enum { LEVELS = 40 };
	char name[201];
	int fds[LEVELS + 1], seen = 0;

	memset(name, 'n', 200);
	name[200] = 0;
	tree_watch(WEFT_FS_CREATED | WEFT_FS_REMOVED);
	fds[0] = open(fs_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < LEVELS; i++) {
		ck_assert_int_eq(mkdirat(fds[i], name, 0700), 0);
		fds[i + 1] = openat(fds[i], name,
				    O_PATH | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(fds[i + 1], 0);
	}
	while (seen < LEVELS) {
		ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
		ck_assert_uint_eq(event.kind, WEFT_FS_CREATED);
		seen++;
	}
	expect_quiet();
	ck_assert_int_eq(mkdirat(fds[LEVELS], "last", 0700), 0);
	ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
	ck_assert_uint_eq(event.path_bytes, LEVELS * 201 + 4);
	ck_assert_str_eq(event.path + LEVELS * 201, "last");
	ck_assert_int_eq(unlinkat(fds[LEVELS], "last", AT_REMOVEDIR), 0);
	for (int i = LEVELS; i > 0; i--) {
		close(fds[i]);
		ck_assert_int_eq(unlinkat(fds[i - 1], name, AT_REMOVEDIR), 0);
	}
	close(fds[0]);
	return tree_end();
}

/* ---- The root ------------------------------------------------------------ */

IO_TEST(root_that_is_removed_is_gone)
{
	tree_watch(WEFT_FS_ALL);
	ck_assert_int_eq(rmdir(fs_root), 0);
	do
		ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
	while (event.kind == WEFT_FS_STATUS);
	ck_assert_uint_eq(event.kind, WEFT_FS_GONE);
	ck_assert_int_eq(event.error, -ENOENT);
	expect_quiet();
	/* Its number is not used again. */
	ck_assert_int_eq(mkdir(fs_root, 0700), 0);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_root, WEFT_FS_ALL, 0), 1);
	fs_make("a");
	ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
	ck_assert_int_eq(event.root, 1);
	return tree_end();
}

static bool try_mount(void)
{
	return become_mount_owner() &&
	       mount("none", fs_path("m"), "tmpfs", 0, "size=64k") == 0;
}

/* The watch does not keep the file system mounted. */
static int64_t unmount(void *arg)
{
	(void)arg;
	watch_begin(fs_path("m"), WEFT_FS_ALL, WEFT_FS_TREE);
	ck_assert_int_eq(umount(fs_path("m")), 0);
	ck_assert_int_eq(weft_fs_watch_next(watch, &event), 0);
	ck_assert_uint_eq(event.kind, WEFT_FS_GONE);
	ck_assert_int_eq(event.error, -ENODEV);
	expect_quiet();
	return weft_fs_watch_close(watch);
}

START_TEST(unmount_is_reported)
{
	fs_root_make();
	fs_mkdir("m");
	if (test_needs(test_can(try_mount) && try_mount(),
		       "unmount_is_reported", NEEDS_MOUNTS))
		io_run(unmount, NULL, 1);
	fs_root_drop();
}
END_TEST

/* ---- Errors and interruptions -------------------------------------------- */

IO_TEST(mistakes_are_refused)
{
	char name[NAME_MAX + 2];

	tree_watch(WEFT_FS_ALL);
	fs_mkdir("d");
	fs_make("a");
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_root, WEFT_FS_ALL, 0),
			 -EEXIST);
	expect_event(WEFT_FS_CREATED, "d", NULL);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_path("d"), WEFT_FS_ALL,
					   WEFT_FS_TREE),
			 -EEXIST);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_path("a"), WEFT_FS_ALL,
					   WEFT_FS_TREE),
			 -EINVAL);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_root, 0, 0), -EINVAL);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_root, WEFT_FS_ALL, 8),
			 -EINVAL);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_root, WEFT_FS_LOST, 0),
			 -EINVAL);
	ck_assert_int_eq(weft_fs_watch_add(watch, NULL, WEFT_FS_ALL, 0),
			 -EFAULT);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_path("none"), WEFT_FS_ALL,
					   0),
			 -ENOENT);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_path("a/b"), WEFT_FS_ALL,
					   0),
			 -ENOTDIR);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	ck_assert_int_eq(weft_fs_watch_add(watch, name, WEFT_FS_ALL, 0),
			 -ENAMETOOLONG);
	ck_assert_int_eq(symlink("loop", fs_path("loop")), 0);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_path("loop"), WEFT_FS_ALL,
					   0),
			 -ELOOP);
	/* The tree about it refuses what is beneath. */
	ck_assert_int_eq(weft_fs_watch_add(watch, quiet_dir(), WEFT_FS_CREATED,
					   WEFT_FS_TREE),
			 -EEXIST);
	expect_event(WEFT_FS_CREATED, "a", NULL);
	ck_assert_int_eq(weft_fs_watch_close(NULL), 0);
	return tree_end();
}

static int64_t add_closed(void *arg)
{
	NEED(weft_fs_watch_open(&watch) == 0);
	NEED(weft_fs_watch_add(watch, arg, WEFT_FS_ALL, 0) == -EACCES);
	return weft_fs_watch_close(watch);
}

static int64_t add_closed_unprivileged(void *arg)
{
	NEED(become_unprivileged());
	return weft_run(add_closed, arg, NULL);
}

START_TEST(closed_directory_is_refused)
{
	fs_root_make();
	ck_assert_int_eq(chmod(fs_root, 0), 0);
	child_run(add_closed_unprivileged, fs_root);
	ck_assert_int_eq(chmod(fs_root, 0700), 0);
	fs_root_drop();
}
END_TEST

static int64_t open_two(void *arg)
{
	struct weft_fs_watch *second;

	(void)arg;
	ck_assert_int_eq(weft_fs_watch_open(&watch), 0);
	ck_assert_int_eq(weft_fs_watch_open(&second), -EMFILE);
	return weft_fs_watch_close(watch);
}

START_TEST(instances_that_are_used_up_are_an_error)
{
	if (test_needs(fs_limit("max_inotify_instances", 1),
		       "instances_that_are_used_up_are_an_error",
		       "a user namespace with limits"))
		io_run(open_two, NULL, 1);
}
END_TEST

static int64_t add_too_many(void *arg)
{
	(void)arg;
	fs_root_make();
	fs_mkdir("1");
	fs_mkdir("2");
	ck_assert_int_eq(weft_fs_watch_open(&watch), 0);
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_root, WEFT_FS_ALL,
					   WEFT_FS_TREE),
			 -ENOSPC);
	/* Nothing was added, and two suffice here. */
	ck_assert_int_eq(rmdir(fs_path("2")), 0);
	expect_quiet();
	ck_assert_int_eq(weft_fs_watch_add(watch, fs_root, WEFT_FS_ALL,
					   WEFT_FS_TREE),
			 0);
	fs_mkdir("2");
	expect_event(WEFT_FS_CREATED, "2", NULL);
	expect_event(WEFT_FS_UNWATCHED, "2", NULL);
	ck_assert_int_eq(event.error, -ENOSPC);
	return tree_end();
}

START_TEST(watches_that_are_used_up_are_an_error)
{
	if (test_needs(fs_limit("max_inotify_watches", 2),
		       "watches_that_are_used_up_are_an_error",
		       "a user namespace with limits"))
		io_run(add_too_many, NULL, 1);
}
END_TEST

static int64_t wait_for_one(void *arg)
{
	struct weft_fs_event one;

	(void)arg;
	return weft_fs_watch_next(watch, &one);
}

IO_TEST(interrupted_wait_loses_nothing_and_a_second_is_refused)
{
	tree_watch(WEFT_FS_CREATED);
	WEFT_WITHIN(WEFT_MS(2))
		ck_assert_int_eq(weft_fs_watch_next(watch, &event),
				 -ETIMEDOUT);
	WEFT_SUPERVISE(scope) {
		struct weft_task task = start(scope, wait_for_one, 0, NULL, 0);

		/* Before it waits, the call below could refuse its own. */
		wait_until(task_has_settled(task));
		ck_assert_int_eq(weft_fs_watch_try_next(watch, &event), -EBUSY);
		weft_scope_cancel(scope);
	}
	fs_mkdir("d");
	WEFT_WITHIN(WEFT_US(1)) {
		ck_assert_int_eq(weft_sleep(WEFT_SEC(1)), -ETIMEDOUT);
		ck_assert_int_eq(weft_fs_watch_next(watch, &event),
				 -ETIMEDOUT);
	}
	expect_event(WEFT_FS_CREATED, "d", NULL);
	return tree_end();
}

/* The event of a new directory is decoded on a thread of the pool. */
static int64_t interrupt_in_the_queue(void *arg)
{
	(void)arg;
	tree_watch(WEFT_FS_CREATED);
	fs_mkdir("d");
	fs_make("d/a");
	WEFT_SUPERVISE(scope) {
		pool_take(scope);
		pool_interrupt(wait_for_one);
		pool_free();
	}
	expect_event(WEFT_FS_CREATED, "d", NULL);
	expect_event(WEFT_FS_CREATED, "d/a", NULL);
	expect_quiet();
	return tree_end();
}

START_TEST(call_that_waits_for_a_thread_loses_nothing)
{
	pool_run(interrupt_in_the_queue, 1 + (unsigned)_i);
}
END_TEST

static int64_t add_in_vain(void *arg)
{
	(void)arg;
	return weft_fs_watch_add(watch, fs_root, WEFT_FS_CREATED, WEFT_FS_TREE);
}

static int64_t interrupt_an_add(void *arg)
{
	(void)arg;
	fs_root_make();
	fs_mkdir("d");
	ck_assert_int_eq(weft_fs_watch_open(&watch), 0);
	WEFT_SUPERVISE(scope) {
		pool_take(scope);
		pool_interrupt(add_in_vain);
		pool_free();
	}
	fs_make("d/a");
	expect_quiet();
	ck_assert_int_eq(add_in_vain(NULL), 0);
	fs_make("d/b");
	expect_event(WEFT_FS_CREATED, "d/b", NULL);
	return tree_end();
}

START_TEST(interrupted_add_adds_nothing)
{
	pool_run(interrupt_an_add, 1 + (unsigned)_i);
}
END_TEST

IO_TEST(select_waits_for_events)
{
	tree_watch(WEFT_FS_CREATED);
	expect_quiet();
	{
		struct weft_case cases[] = {
			WEFT_READY(weft_fs_watch_fd(watch), POLLIN),
			WEFT_AT(weft_now() + WEFT_MS(2)),
		};

		ck_assert_int_eq(weft_select(cases, 2), 1);
		fs_make("a");
		cases[1].kind = WEFT_CASE_NONE;
		ck_assert_int_eq(weft_select(cases, 2), 0);
	}
	ck_assert_int_eq(weft_fs_watch_try_next(watch, &event), 0);
	return tree_end();
}

/* As the kernel's, with the name of another file system. */
static void input_put(uint32_t mask, const char *name)
{
	struct inotify_event *put =
		(void *)(watch->input + watch->input_bytes);
	size_t bytes = (strlen(name) + 16) & ~(size_t)15;

	*put = (struct inotify_event){
		.wd = watch->roots->dir->wd,
		.mask = mask,
		.cookie = 1,
		.len = (uint32_t)bytes,
	};
	memset(put->name, 0, bytes);
	memcpy(put->name, name, strlen(name));
	watch->input_bytes += sizeof(*put) + bytes;
}

/* VFAT counts its names in another way, and FUSE has no limit of its own. */
IO_TEST(names_may_be_longer_than_name_max)
{
	static char from[3000], to[4000];

	tree_watch(WEFT_FS_MOVED | WEFT_FS_REMOVED);
	memset(from, 'f', sizeof(from) - 1);
	memset(to, 't', sizeof(to) - 1);
	input_put(IN_MOVED_FROM, from);
	input_put(IN_MOVED_TO, to);
	expect_event(WEFT_FS_MOVED, to, from);
	input_put(IN_MOVED_FROM, from);
	expect_event(WEFT_FS_REMOVED, from, NULL);
	expect_quiet();
	return tree_end();
}

/* No descriptor is left to open it. */
static bool descriptors_end(struct rlimit *ret_old)
{
	int lowest = dup(0);

	ck_assert_int_ge(lowest, 0);
	close(lowest);
	*ret_old = limit_set(RLIMIT_NOFILE, (rlim_t)lowest);
	lowest = dup(0);
	if (lowest >= 0)
		close(lowest);
	return lowest < 0;
}

IO_TEST(directory_that_cannot_be_opened_is_reported_once)
{
	struct rlimit old;
	int r = 0;

	tree_watch(WEFT_FS_CREATED);
	fs_mkdir("a");
	if (test_needs(descriptors_end(&old),
		       "directory_that_cannot_be_opened_is_reported_once",
		       "a limit of descriptors")) {
		expect_event(WEFT_FS_CREATED, "a", NULL);
		expect_event(WEFT_FS_UNWATCHED, "a", NULL);
		ck_assert_int_eq(event.error, -EMFILE);
		expect_event(WEFT_FS_UNWATCHED, "", NULL);
		expect_quiet();
		WEFT_WITHIN(WEFT_MS(2))
			r = weft_fs_watch_next(watch, &event);
		ck_assert_int_eq(r, -ETIMEDOUT);
		fs_mkdir("b");
		expect_event(WEFT_FS_CREATED, "b", NULL);
		expect_event(WEFT_FS_UNWATCHED, "b", NULL);
		expect_quiet();
		/* It is tried again after an event. */
		limit_reset(RLIMIT_NOFILE, old);
		ck_assert_int_eq(mknod(fs_path("c"), S_IFREG | 0600, 0), 0);
		expect_event(WEFT_FS_CREATED, "c", NULL);
		while (weft_fs_watch_try_next(watch, &event) == 0)
			ck_assert_uint_eq(event.kind, WEFT_FS_CREATED);
		ck_assert_int_eq(mknod(fs_path("a/d"), S_IFREG | 0600, 0), 0);
		expect_event(WEFT_FS_CREATED, "a/d", NULL);
		expect_quiet();
	}
	limit_reset(RLIMIT_NOFILE, old);
	return tree_end();
}

START_TEST(calls_need_a_task)
{
	ck_assert_int_eq(weft_fs_watch_open(&watch), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/watch");
	TCase *tc = tcase_create("watch");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, each_change_is_reported_with_its_path);
	io_add_test(tc, only_the_kinds_that_were_asked_for_are_reported);
	io_add_test(tc, directory_without_its_tree_reports_its_entries_alone);
	io_add_test(tc, file_is_watched_by_itself);
	io_add_test(tc, moved_directory_works_under_its_new_name);
	io_add_test(tc, what_was_made_before_the_watch_stood_is_reported);
	io_add_test(tc, directory_that_leaves_the_tree_is_not_watched);
	io_add_test(tc, tree_deeper_than_a_path_may_be_long_is_watched);
	io_add_test(tc, root_that_is_removed_is_gone);
	tcase_add_test(tc, unmount_is_reported);
	io_add_test(tc, mistakes_are_refused);
	if (test_needs(test_can(become_unprivileged),
		       "closed_directory_is_refused", NEEDS_ANOTHER_USER))
		tcase_add_test(tc, closed_directory_is_refused);
	tcase_add_test(tc, instances_that_are_used_up_are_an_error);
	tcase_add_test(tc, watches_that_are_used_up_are_an_error);
	io_add_test(tc, interrupted_wait_loses_nothing_and_a_second_is_refused);
	io_add_test(tc, call_that_waits_for_a_thread_loses_nothing);
	io_add_test(tc, interrupted_add_adds_nothing);
	io_add_test(tc, select_waits_for_events);
	io_add_test(tc, names_may_be_longer_than_name_max);
	io_add_test(tc, directory_that_cannot_be_opened_is_reported_once);
	tcase_add_test(tc, calls_need_a_task);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

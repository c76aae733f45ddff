/* SPDX-License-Identifier: MIT */
/*
 * A tree that changes while its events are read: renames of files and of
 * directories, one over the other, and more events than the kernel keeps.  The
 * names that the events tell of are those of the disk in the end, and each
 * directory is watched under its name.
 */
#include <pthread.h>

#include "tests/support/fs_watch_kit.h"
#include "tests/support/needs.h"

/* ---- Storms -------------------------------------------------------------- */

enum { STORM_NAMES = 4, STORM_STEPS = 1500 };

struct storm {
	uint64_t seed;
	weft__atomic(bool) ended;
};

static unsigned dice(struct storm *storm, unsigned sides)
{
	storm->seed = storm->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(storm->seed >> 33) % sides;
}

/* One to three levels of four names. */
static void storm_path(struct storm *storm, char *path)
{
	unsigned levels = 1 + dice(storm, 3);

	for (unsigned i = 0; i < levels; i++) {
		*path++ = (char)('a' + dice(storm, STORM_NAMES));
		*path++ = i + 1 < levels ? '/' : 0;
	}
}

/* Most of these fail, as they should. */
static void storm_step(struct storm *storm)
{
	char path[32], to[32];
	const char *full;
	int fd;

	storm_path(storm, path);
	full = fs_path(path);
	switch (dice(storm, 8)) {
	case 0:
	case 1:
		(void)mkdir(full, 0700);
		break;
	case 2:
		fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
		break;
	case 3:
		(void)unlink(full);
		break;
	case 4:
		(void)rmdir(full);
		break;
	default:
		storm_path(storm, to);
		(void)rename(full, fs_path(to));
		break;
	}
}

static void *storm_run(void *arg)
{
	struct storm *storm = arg;

	for (int i = 0; i < STORM_STEPS; i++) {
		storm_step(storm);
		if (dice(storm, 64) == 0)
			thread_pause_ns((long)dice(storm, 300) * 1000);
	}
	weft__store(&storm->ended, true, release); /* pairs: [test.storm] */
	return NULL;
}

static void storm_follow(struct storm *storm, struct fs_names *told)
{
	pthread_t thread;
	bool ended;

	ck_assert_int_eq(pthread_create(&thread, NULL, storm_run, storm), 0);
	do {
		/* pairs: [test.storm] */
		ended = weft__load(&storm->ended, acquire);
		names_follow(told);
		ck_assert_int_eq(weft_sleep(WEFT_US(100)), 0);
	} while (!ended);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

IO_TEST(names_are_those_of_the_disk_after_a_storm)
{
	static struct fs_names told;

	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct storm storm = { .seed = seed * 977 };

		tree_watch(WEFT_FS_ALL);
		storm_follow(&storm, &told);
		names_follow(&told);
		expect_names(&told);
		/* Each directory is watched under its name. */
		for (int i = 0, count = told.count; i < count; i++) {
			char path[64];

			snprintf(path, sizeof(path), "%s/x", told.path[i]);
			if (mkdir(fs_path(path), 0700) == 0)
				expect_event(WEFT_FS_CREATED, path, NULL);
		}
		names_clear(&told);
		ck_assert_int_eq(tree_end(), 0);
	}
	return 0;
}

/* ---- Overflow ------------------------------------------------------------ */

static void overflow(int events)
{
	fs_mkdir("d/lost");
	for (int i = 0; i < events / 2 + 2; i++) {
		fs_rename("a", "b");
		fs_rename("b", "a");
	}
	/* The kernel tells of none of these. */
	fs_mkdir("e");
	fs_mkdir("e/deep");
	fs_rename("d", "f");
	ck_assert_int_eq(rmdir(fs_path("gone")), 0);
}

static void expect_complete(void)
{
	static const char *const made[] = { "e/deep/1", "f/lost/2", "3" };

	for (int i = 0; i < 3; i++) {
		fs_make(made[i]);
		expect_event(WEFT_FS_CREATED, made[i], NULL);
	}
	expect_quiet();
}

IO_TEST(overflow_is_reported_and_the_tree_complete_again)
{
	static struct fs_names told;
	int max = fs_queued_max(), lost = 0, r;

	if (!test_needs(max > 0 && max <= 1 << 16,
			"overflow_is_reported_and_the_tree_complete_again",
			"a max_queued_events of at most 65536"))
		return 0;
	tree_watch(WEFT_FS_CREATED | WEFT_FS_REMOVED | WEFT_FS_MOVED);
	fs_make("a");
	fs_mkdir("d");
	fs_mkdir("gone");
	names_follow(&told);
	overflow(max);
	while ((r = weft_fs_watch_try_next(watch, &event)) == 0) {
		names_apply(&told, &event);
		lost += event.kind == WEFT_FS_LOST;
		if (event.kind == WEFT_FS_LOST) {
			ck_assert_int_eq(event.root, -1);
			ck_assert_str_eq(event.path, "");
		}
	}
	ck_assert_int_eq(r, -EAGAIN);
	ck_assert_int_eq(lost, 1);
	expect_names(&told);
	expect_complete();
	names_clear(&told);
	return tree_end();
}

int main(void)
{
	Suite *suite = suite_create("fs/watch_storm");
	TCase *tc = tcase_create("storm");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, names_are_those_of_the_disk_after_a_storm);
	io_add_test(tc, overflow_is_reported_and_the_tree_complete_again);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}

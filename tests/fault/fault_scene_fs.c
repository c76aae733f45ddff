/* SPDX-License-Identifier: MIT */
/*
 * Scenes of watches, of files that are followed, and of the time of day.
 *
 * Each works in a place of its own beneath /tmp, and leaves nothing there.  A
 * watch that runs out of memory or descriptors may lose events, but reports
 * that.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/fault/fault_scene.h"

#define POOL_ERRORS EAGAIN, FD_ERRORS

static void make(const char *top, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	EXPECT(mkdir(path, 0700) == 0);
}

static void move(const char *top, const char *from, const char *to)
{
	char old[128], path[128];

	snprintf(old, sizeof(old), "%s/%s", top, from);
	snprintf(path, sizeof(path), "%s/%s", top, to);
	EXPECT(rename(old, path) == 0);
}

static void clear(const char *top)
{
	static const char *const names[] = { "b/deep", "b", "" };
	char path[128];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", top, names[i]);
		EXPECT(rmdir(path) == 0);
	}
}

/* ---- Watches ------------------------------------------------------------- */

static void watch_changes(struct weft_fs_watch *watch, const char *top)
{
	struct weft_fs_event event;
	int events = 0;
	int64_t r;

	make(top, "a");
	make(top, "a/deep");
	move(top, "a", "b");
	while ((r = weft_fs_watch_try_next(watch, &event)) == 0)
		events++;
	if (r != -EAGAIN)
		MAY(r, POOL_ERRORS);
	/* Events may be lost, but then that is one. */
	EXPECT(events > 0 || fault_fired());
}

static int64_t watching(void *arg)
{
	char top[] = "/tmp/weft-fault-XXXXXX";
	struct weft_fs_watch *watch;

	(void)arg;
	if (MAY(weft_fs_watch_open(&watch), FD_ERRORS) < 0)
		return 0;
	EXPECT(mkdtemp(top));
	if (MAY(weft_fs_watch_add(watch, top, WEFT_FS_ALL, WEFT_FS_TREE),
		POOL_ERRORS, ENOSPC) >= 0) {
		watch_changes(watch, top);
		clear(top);
	} else {
		EXPECT(rmdir(top) == 0);
	}
	EXPECT(weft_fs_watch_close(watch) == 0);
	return 0;
}

void scene_watching(unsigned workers)
{
	scene_run(watching, NULL, workers);
}

/* ---- Files that are followed, and the time of day ------------------------ */

static void follow_one(struct weft_follow *follow, int fd)
{
	unsigned news;
	char buf[16];
	int64_t r;

	WEFT_WITHIN(WEFT_MS(20)) {
		r = weft_follow_read(follow, buf, sizeof(buf), &news);
		if (r >= 0)
			EXPECT(write(fd, "more", 4) == 4);
		if (r >= 0)
			r = weft_follow_read(follow, buf, sizeof(buf), &news);
		MAY_END(r, POOL_ERRORS, EIO);
	}
	EXPECT(weft_follow_close(follow) == 0);
}

static int64_t following(void *arg)
{
	char path[] = "/tmp/weft-fault-XXXXXX";
	int other, fd = mkostemp(path, O_CLOEXEC);
	struct weft_follow *follow;

	(void)arg;
	if (fd < 0) {
		EXPECT(fault_fired());
		return 0;
	}
	EXPECT(write(fd, "text", 4) == 4);
	if (MAY(weft_follow_open(path, 0, &follow), POOL_ERRORS) == 0)
		follow_one(follow, fd);
	other = open(path, O_RDONLY | O_CLOEXEC);
	if (other < 0)
		EXPECT(fault_fired());
	else if (MAY(weft_follow_open_fd(other, 0, &follow), POOL_ERRORS) == 0)
		follow_one(follow, fd);
	else
		close(other);
	EXPECT(unlink(path) == 0);
	close(fd);
	MAY(weft_sleep_until_wall(weft_wall_now() + 100000), FD_ERRORS);
	return 0;
}

void scene_following(unsigned workers)
{
	scene_run(following, NULL, workers);
}

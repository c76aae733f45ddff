/* SPDX-License-Identifier: MIT */
/*
 * The calls of <weft/walk.h>, <weft/fs_watch.h> and <weft/follow.h> that
 * suspend, for the table in io_calls.h, each in a directory of its own.
 *
 * A walk and a removal wait for a thread of the pool, or in the function of the
 * caller.  A watch waits for a name in its directory, a follow for bytes in its
 * file.
 */
#ifndef WEFT_TESTS_SUPPORT_FS_CALLS_H
#define WEFT_TESTS_SUPPORT_FS_CALLS_H

#include "tests/support/quiet_dir.h"
#include "tests/support/task_calls.h"

/* ---- Trees --------------------------------------------------------------- */

static inline void branch_name(char path[64], const char *base, int i)
{
	static const char *const names[] = { "", "/a", "/b" };

	snprintf(path, 64, "%.40s%s", base, names[i]);
}

static inline void branch_make(char *base)
{
	char path[64];

	EXPECT(mkdtemp(base));
	for (int i = 1; i < 3; i++) {
		branch_name(path, base, i);
		EXPECT(mkdir(path, 0700) == 0);
	}
}

/* The rest of it. */
static inline void branch_remove(const char *base)
{
	char path[64];

	for (int i = 2; i >= 0; i--) {
		branch_name(path, base, i);
		(void)!rmdir(path);
	}
	EXPECT(access(base, F_OK) < 0);
}

static inline int visit_waits(const struct weft_walk_entry *entry, void *arg)
{
	struct place *place = arg;

	EXPECT(entry->event == WEFT_WALK_ENTRY);
	return entry->depth ? weft_event_wait(&place->event) : 0;
}
static inline int visit_goes_on(const struct weft_walk_entry *entry, void *arg)
{
	(void)arg;
	EXPECT(entry->event == WEFT_WALK_ENTRY);
	return 0;
}
static inline ssize_t
walk_branch(struct place *place,
	    int (*visit)(const struct weft_walk_entry *entry, void *arg))
{
	char base[] = "/tmp/weft-branch-XXXXXX";
	int r;

	branch_make(base);
	r = weft_walk(AT_FDCWD, base, visit, place, NULL);
	branch_remove(base);
	return r;
}
static inline ssize_t make_walk(struct place *place)
{
	return walk_branch(place, visit_goes_on);
}
static inline ssize_t make_walk_that_waits(struct place *place)
{
	return walk_branch(place, visit_waits);
}

static inline int report_waits(const char *path, int error, void *arg)
{
	(void)path;
	EXPECT(error == 0);
	return weft_event_wait(&((struct place *)arg)->event);
}
static inline ssize_t remove_branch(const struct weft_remove_opts *opts)
{
	char base[] = "/tmp/weft-branch-XXXXXX";
	int r;

	branch_make(base);
	r = weft_remove_tree(AT_FDCWD, base, opts);
	EXPECT(r < 0 || access(base, F_OK) < 0);
	branch_remove(base);
	return r;
}
static inline ssize_t make_remove_tree(struct place *place)
{
	(void)place;
	return remove_branch(NULL);
}
static inline ssize_t make_removal_that_waits(struct place *place)
{
	struct weft_remove_opts opts = WEFT_REMOVE_OPTS_INIT;

	opts.report = report_waits;
	opts.arg = place;
	return remove_branch(&opts);
}

/* ---- Watches ------------------------------------------------------------- */

static inline void watch_directory(struct place *place, unsigned flags)
{
	snprintf(place->address, sizeof(place->address),
		 "/tmp/weft-watched-XXXXXX");
	EXPECT(mkdtemp(place->address));
	EXPECT(weft_fs_watch_open(&place->watch) == 0);
	EXPECT(weft_fs_watch_add(place->watch, place->address, WEFT_FS_CREATED,
				 flags) == 0);
}
static inline void watch_open(struct place *place)
{
	watch_directory(place, 0);
}
/* Of a tree: each name in it is a directory, which is read by a thread. */
static inline void watch_without_thread_open(struct place *place)
{
	watch_directory(place, WEFT_FS_TREE);
	thread_taken_open(place);
}

static inline void watched_name(const struct place *place, unsigned i,
				char path[128])
{
	snprintf(path, 128, "%.90s/%u", place->address, i);
}
static inline void watch_let_go(struct place *place)
{
	char path[128];

	watched_name(place, place->offered++, path);
	EXPECT(mkdir(path, 0700) == 0);
}

/* Names come once, and in order. */
static inline ssize_t watched(struct place *place, int r,
			      const struct weft_fs_event *event)
{
	char name[16];

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%u", place->taken++);
	EXPECT(event->kind == WEFT_FS_CREATED);
	EXPECT(strcmp(event->path, name) == 0);
	return r;
}
static inline ssize_t make_fs_watch_next(struct place *place)
{
	struct weft_fs_event event;

	return watched(place, weft_fs_watch_next(place->watch, &event), &event);
}
static inline ssize_t make_fs_watch_try_next(struct place *place)
{
	struct weft_fs_event event;

	watch_let_go(place);
	return watched(place, weft_fs_watch_try_next(place->watch, &event),
		       &event);
}
static inline void watch_settle(struct place *place)
{
	struct weft_fs_event event;
	char path[128];

	event_let_go(place);
	while (place->taken < place->offered)
		WEFT_WITHIN(WEFT_SEC(20))
			EXPECT(make_fs_watch_next(place) == 0);
	EXPECT(weft_fs_watch_try_next(place->watch, &event) == -EAGAIN);
	while (place->offered) {
		watched_name(place, --place->offered, path);
		EXPECT(rmdir(path) == 0);
	}
	EXPECT(rmdir(place->address) == 0);
	EXPECT(weft_fs_watch_close(place->watch) == 0);
}

static inline ssize_t make_fs_watch_add(struct place *place)
{
	struct weft_fs_watch *watch;
	int r;

	(void)place;
	EXPECT(weft_fs_watch_open(&watch) == 0);
	r = weft_fs_watch_add(watch, "/", WEFT_FS_CREATED, 0);
	EXPECT(weft_fs_watch_close(watch) == 0);
	return r;
}
static inline ssize_t make_fs_watch_close(struct place *place)
{
	struct weft_fs_watch *watch;

	(void)place;
	EXPECT(weft_fs_watch_open(&watch) == 0);
	return weft_fs_watch_close(watch);
}

/* ---- Follows ------------------------------------------------------------- */

static inline void follow_a_file_open(struct place *place)
{
	snprintf(place->address, sizeof(place->address),
		 "%s/weft-followed-XXXXXX", quiet_dir());
	place->peer = mkostemp(place->address, O_CLOEXEC);
	EXPECT(place->peer >= 0);
	EXPECT(weft_follow_open(place->address, 0, &place->follow) == 0);
}
static inline ssize_t make_follow_read(struct place *place)
{
	unsigned news = 0;
	ssize_t n = weft_follow_read(place->follow, room(place), SHORT_BYTES,
				     &news);

	EXPECT(n != 0 && news == 0);
	return receive(place, n);
}
static inline void follow_settle(struct place *place)
{
	while (place->got < place->sent)
		WEFT_WITHIN(WEFT_SEC(20))
			EXPECT(make_follow_read(place) > 0);
	EXPECT(place->got == place->sent);
	EXPECT(unlink(place->address) == 0);
	EXPECT(weft_follow_close(place->follow) == 0);
}

/* Of a file that is missing. */
static inline ssize_t make_follow_open(struct place *place)
{
	struct weft_follow *follow;
	int r = weft_follow_open("/weft-is-not-here", 0, &follow);

	(void)place;
	if (r == 0)
		EXPECT(weft_follow_close(follow) == 0);
	return r;
}
static inline ssize_t make_follow_close(struct place *place)
{
	struct weft_follow *follow = NULL;

	(void)place;
	WEFT_SHIELD
		EXPECT(weft_follow_open("/weft-is-not-here", 0, &follow) == 0);
	return weft_follow_close(follow);
}

#endif

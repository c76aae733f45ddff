/* SPDX-License-Identifier: MIT */
/* A watch of a directory of a test's own, and its events. */
#ifndef WEFT_TESTS_SUPPORT_FS_WATCH_KIT_H
#define WEFT_TESTS_SUPPORT_FS_WATCH_KIT_H

#include "tests/support/fs_names.h"

static struct weft_fs_watch *watch;
static struct weft_fs_event event;

static inline void watch_begin(const char *path, unsigned kinds, unsigned flags)
{
	ck_assert_int_eq(weft_fs_watch_open(&watch), 0);
	ck_assert_int_eq(weft_fs_watch_add(watch, path, kinds, flags), 0);
}

static inline void tree_watch(unsigned kinds)
{
	fs_root_make();
	watch_begin(fs_root, kinds, WEFT_FS_TREE);
}

static inline int64_t tree_end(void)
{
	ck_assert_int_eq(weft_fs_watch_close(watch), 0);
	fs_root_drop();
	return 0;
}

static inline void expect_event(unsigned kind, const char *path,
				const char *from)
{
	int r = 0;

	WEFT_WITHIN(WEFT_SEC(20))
		r = weft_fs_watch_next(watch, &event);
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(event.path, path);
	ck_assert_uint_eq(event.kind, kind);
	ck_assert_uint_eq(event.path_bytes, strlen(path));
	ck_assert_pstr_eq(event.from, from);
	ck_assert_uint_eq(event.from_bytes, from ? strlen(from) : 0);
	ck_assert_int_eq(event.root, 0);
}

static inline void expect_quiet(void)
{
	ck_assert_int_eq(weft_fs_watch_try_next(watch, &event), -EAGAIN);
}

static inline void names_follow(struct fs_names *names)
{
	int r;

	while ((r = weft_fs_watch_try_next(watch, &event)) == 0)
		names_apply(names, &event);
	ck_assert_int_eq(r, -EAGAIN);
}

static inline void expect_names(struct fs_names *told)
{
	static struct fs_names there;

	names_list(&there);
	ck_assert_int_eq(names_differ(told, &there), 0);
	names_clear(&there);
}

#endif

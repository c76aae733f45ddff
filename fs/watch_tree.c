/* SPDX-License-Identifier: MIT */
/*
 * The directories that a watch knows: a tree of names, with two tables of
 * hashed chains beside it, by wd and by parent and name.  A table that cannot
 * grow for want of memory has longer chains.
 */
#include "fs/watch.h"

#include <errno.h>
#include <string.h>

#include "runtime/base/memory.h"

enum { BUCKETS_MIN = 16 };

/* ---- Tables -------------------------------------------------------------- */

static uint32_t mix(uint64_t value)
{
	return (uint32_t)((value * 0x9e3779b97f4a7c15u) >> 32);
}

static uint32_t hash_of(const struct weft__watch_dir *parent, const char *name)
{
	uint64_t hash = (uintptr_t)parent;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return mix(hash);
}

static struct weft__watch_dir **wd_bucket(struct weft_fs_watch *watch, int wd)
{
	return &watch->by_wd[mix((uint64_t)wd) & (watch->buckets - 1)];
}

static struct weft__watch_dir **name_bucket(struct weft_fs_watch *watch,
					    uint32_t hash)
{
	return &watch->by_name[hash & (watch->buckets - 1)];
}

struct weft__watch_dir *weft__watch_by_wd(struct weft_fs_watch *watch, int wd)
{
	struct weft__watch_dir *dir =
		watch->buckets && wd >= 0 ? *wd_bucket(watch, wd) : NULL;

	while (dir && dir->wd != wd)
		dir = dir->by_wd;
	return dir;
}

struct weft__watch_dir *weft__watch_child(struct weft_fs_watch *watch,
					  const struct weft__watch_dir *parent,
					  const char *name)
{
	uint32_t hash = hash_of(parent, name);
	struct weft__watch_dir *dir =
		watch->buckets ? *name_bucket(watch, hash) : NULL;

	while (dir && (dir->hash != hash || dir->parent != parent ||
		       strcmp(dir->name, name) != 0))
		dir = dir->by_name;
	return dir;
}

static void wd_put(struct weft_fs_watch *watch, struct weft__watch_dir *dir)
{
	struct weft__watch_dir **at = wd_bucket(watch, dir->wd);

	dir->by_wd = *at;
	*at = dir;
}

static void name_put(struct weft_fs_watch *watch, struct weft__watch_dir *dir)
{
	struct weft__watch_dir **at = name_bucket(watch, dir->hash);

	dir->by_name = *at;
	*at = dir;
}

static void name_take(struct weft_fs_watch *watch, struct weft__watch_dir *dir)
{
	struct weft__watch_dir **at = name_bucket(watch, dir->hash);

	while (*at != dir)
		at = &(*at)->by_name;
	*at = dir->by_name;
}

void weft__watch_set_wd(struct weft_fs_watch *watch,
			struct weft__watch_dir *dir, int wd)
{
	if (dir->wd >= 0) {
		struct weft__watch_dir **at = wd_bucket(watch, dir->wd);

		while (*at != dir)
			at = &(*at)->by_wd;
		*at = dir->by_wd;
	}
	dir->wd = wd;
	if (wd >= 0)
		wd_put(watch, dir);
}

/* The chains of a table of names hold all directories. */
static void tables_fill(struct weft_fs_watch *watch,
			struct weft__watch_dir **old, uint32_t buckets)
{
	for (uint32_t i = 0; i < buckets; i++)
		for (struct weft__watch_dir *dir = old[i], *next; dir;
		     dir = next) {
			next = dir->by_name;
			name_put(watch, dir);
			if (dir->wd >= 0)
				wd_put(watch, dir);
		}
}

static int tables_grow(struct weft_fs_watch *watch)
{
	uint32_t old = watch->buckets, buckets = old ? 2 * old : BUCKETS_MIN;
	size_t bytes = buckets * sizeof(void *);
	struct weft__watch_dir **by_wd, **by_name, **names = watch->by_name;

	by_wd = weft__memory_zeroed(watch->memory, bytes);
	by_name = weft__memory_zeroed(watch->memory, bytes);
	if (!by_wd || !by_name) {
		weft__memory_free(watch->memory, by_wd, bytes);
		weft__memory_free(watch->memory, by_name, bytes);
		return -ENOMEM;
	}
	weft__memory_free(watch->memory, watch->by_wd, old * sizeof(void *));
	watch->by_wd = by_wd;
	watch->by_name = by_name;
	watch->buckets = buckets;
	if (names)
		tables_fill(watch, names, old);
	weft__memory_free(watch->memory, names, old * sizeof(void *));
	return 0;
}

/* ---- Directories --------------------------------------------------------- */

static void link_to(struct weft__watch_dir *dir,
		    struct weft__watch_dir *parent)
{
	dir->parent = parent;
	dir->prev = NULL;
	dir->next = parent ? parent->first : NULL;
	if (dir->next)
		dir->next->prev = dir;
	if (parent)
		parent->first = dir;
}

static void unlink_from(struct weft__watch_dir *dir)
{
	if (dir->next)
		dir->next->prev = dir->prev;
	if (dir->prev)
		dir->prev->next = dir->next;
	else if (dir->parent)
		dir->parent->first = dir->next;
}

struct weft__watch_dir *weft__watch_dir_new(struct weft_fs_watch *watch,
					    struct weft__watch_root *root,
					    struct weft__watch_dir *parent,
					    const char *name)
{
	struct weft__watch_dir *dir;

	if (watch->dirs >= watch->buckets && tables_grow(watch) < 0 &&
	    !watch->buckets)
		return NULL;
	dir = weft__memory_zeroed(watch->memory, sizeof(*dir));
	if (!dir)
		return NULL;
	dir->name = weft__memory_text(watch->memory, name);
	if (!dir->name) {
		weft__memory_free(watch->memory, dir, sizeof(*dir));
		return NULL;
	}
	dir->name_bytes = (uint32_t)strlen(name);
	dir->root = root;
	dir->wd = -1;
	dir->hash = hash_of(parent, name);
	link_to(dir, parent);
	name_put(watch, dir);
	watch->dirs++;
	return dir;
}

int weft__watch_dir_move(struct weft_fs_watch *watch,
			 struct weft__watch_dir *dir,
			 struct weft__watch_dir *parent, const char *name)
{
	char *copy = weft__memory_text(watch->memory, name);

	if (!copy)
		return -ENOMEM;
	name_take(watch, dir);
	unlink_from(dir);
	weft__memory_text_free(watch->memory, dir->name);
	dir->name = copy;
	dir->name_bytes = (uint32_t)strlen(copy);
	dir->hash = hash_of(parent, copy);
	link_to(dir, parent);
	name_put(watch, dir);
	return 0;
}

static void due_take(struct weft_fs_watch *watch, struct weft__watch_dir *dir)
{
	if (dir->due)
		dir->due->due_prev = dir->due_prev;
	else
		watch->due_last = dir->due_prev;
	if (dir->due_prev)
		dir->due_prev->due = dir->due;
	else
		watch->due = dir->due;
	dir->scan = WEFT__SCAN_NONE;
}

struct weft__watch_dir *weft__watch_due_take(struct weft_fs_watch *watch,
					     enum weft__watch_scan *ret_scan)
{
	struct weft__watch_dir *dir = watch->due;

	*ret_scan = dir->scan;
	due_take(watch, dir);
	return dir;
}

static void dir_free(struct weft_fs_watch *watch, struct weft__watch_dir *dir)
{
	if (dir->wd >= 0)
		(void)inotify_rm_watch(watch->fd, dir->wd);
	weft__watch_set_wd(watch, dir, -1);
	if (dir->scan)
		due_take(watch, dir);
	name_take(watch, dir);
	unlink_from(dir);
	weft__memory_text_free(watch->memory, dir->name);
	weft__memory_free(watch->memory, dir, sizeof(*dir));
	watch->dirs--;
}

/* From the leaves up, without recursion: a tree may be deep. */
void weft__watch_dir_drop(struct weft_fs_watch *watch,
			  struct weft__watch_dir *dir)
{
	struct weft__watch_dir *at = dir;

	for (;;) {
		struct weft__watch_dir *parent = at->parent;

		if (at->first) {
			at = at->first;
			continue;
		}
		if (at == dir)
			break;
		dir_free(watch, at);
		at = parent;
	}
	dir_free(watch, dir);
}

/* ---- Those that are to be scanned ---------------------------------------- */

/* The scan that reports more stands. */
void weft__watch_dir_due(struct weft_fs_watch *watch,
			 struct weft__watch_dir *dir,
			 enum weft__watch_scan scan)
{
	if (dir->scan) {
		if (scan > (enum weft__watch_scan)dir->scan)
			dir->scan = (uint8_t)scan;
		return;
	}
	dir->scan = (uint8_t)scan;
	dir->due = NULL;
	dir->due_prev = watch->due_last;
	if (watch->due_last)
		watch->due_last->due = dir;
	else
		watch->due = dir;
	watch->due_last = dir;
}

void weft__watch_dir_later(struct weft_fs_watch *watch,
			   struct weft__watch_dir *dir,
			   enum weft__watch_scan scan)
{
	if (scan > (enum weft__watch_scan)dir->incomplete)
		dir->incomplete = (uint8_t)scan;
	watch->incomplete = true;
}

void weft__watch_check_all(struct weft_fs_watch *watch)
{
	for (uint32_t i = 0; i < watch->buckets; i++)
		for (struct weft__watch_dir *dir = watch->by_name[i]; dir;
		     dir = dir->by_name)
			weft__watch_dir_later(watch, dir, WEFT__SCAN_CHECK);
}

void weft__watch_later_due(struct weft_fs_watch *watch)
{
	watch->incomplete = false;
	for (uint32_t i = 0; i < watch->buckets; i++)
		for (struct weft__watch_dir *dir = watch->by_name[i]; dir;
		     dir = dir->by_name) {
			enum weft__watch_scan scan = dir->incomplete;

			dir->incomplete = WEFT__SCAN_NONE;
			if (scan)
				weft__watch_dir_due(watch, dir, scan);
		}
}

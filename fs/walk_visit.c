/* SPDX-License-Identifier: MIT */
/*
 * Visits of a walk: what the caller's function gets of a file, and of a
 * directory that it was in.  The text of a path is the visiting task's, and
 * each visit writes its name behind the part of the directory.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "fs/walk.h"

void weft__walk_path_fini(struct weft__walk *walk, struct weft__walk_path *path)
{
	weft__memory_free(walk->tree.memory, path->text, path->max);
}

/* Room for a name is kept behind the directory's part. */
int weft__walk_path_set(struct weft__walk *walk, struct weft__walk_path *path,
			const struct weft__tree_dir *dir)
{
	size_t bytes = dir->path_bytes + 1 + PATH_MAX;
	size_t max = bytes + bytes / 2;
	char *text;

	if (path->max < bytes) {
		text = weft__memory_new(walk->tree.memory, max);
		if (!text)
			return -ENOMEM;
		weft__walk_path_fini(walk, path);
		path->text = text;
		path->max = max;
	}
	weft__tree_path(dir, path->text);
	path->dir_bytes = dir->path_bytes;
	if (path->dir_bytes)
		path->text[path->dir_bytes++] = '/';
	return 0;
}

int weft__walk_visit_dirent(struct weft__walk *walk,
			    struct weft__walk_path *path,
			    const struct weft__tree_dir *dir, int dir_fd,
			    const struct weft__dirent *dirent,
			    const struct statx *status)
{
	char *name = path->text + path->dir_bytes;
	size_t name_bytes = strlen(dirent->name);
	int error = (int)dirent->offset;
	struct weft_walk_entry entry = {
		.path = path->text,
		.name = name,
		.path_bytes = path->dir_bytes + name_bytes,
		.name_bytes = name_bytes,
		.inode = dirent->inode,
		.dir_fd = dir_fd,
		.error = error,
		.depth = dir->depth + 1,
		.event = error ? WEFT_WALK_ERROR : WEFT_WALK_ENTRY,
		.type = dirent->type,
		.status = error ? NULL : status,
	};

	memcpy(name, dirent->name, name_bytes + 1);
	return walk->visit(&entry, walk->arg);
}

int weft__walk_leave_dirent(struct weft__walk *walk,
			    struct weft__walk_path *path,
			    const struct weft__tree_dir *dir, int dir_fd,
			    const struct weft__dirent *dirent)
{
	char *name = path->text + path->dir_bytes;
	size_t name_bytes = strlen(dirent->name);
	struct weft_walk_entry entry = {
		.path = path->text,
		.name = name,
		.path_bytes = path->dir_bytes + name_bytes,
		.name_bytes = name_bytes,
		.inode = dirent->inode,
		.dir_fd = dir_fd,
		.depth = dir->depth + 1,
		.event = WEFT_WALK_LEAVE,
		.type = DT_DIR,
	};

	return weft__walk_has(walk, WEFT_WALK_POST) ?
		       walk->visit(&entry, walk->arg) :
		       0;
}

int weft__walk_visit_dir(struct weft__walk *walk, struct weft__walk_path *path,
			 const struct weft__tree_dir *dir, int dir_fd,
			 enum weft_walk_event event, int error)
{
	struct weft_walk_entry entry = {
		.path_bytes = dir->path_bytes,
		.name_bytes = dir->name_bytes,
		.dir_fd = dir_fd,
		.error = error,
		.depth = dir->depth,
		.event = event,
		.type = DT_DIR,
	};
	int r = weft__walk_path_set(walk, path, dir);

	if (r < 0)
		return r;
	path->text[dir->path_bytes] = '\0';
	entry.path = path->text;
	entry.name = path->text + dir->path_bytes - dir->name_bytes;
	if (!dir->parent) {
		entry.name = walk->path;
		entry.name_bytes = strlen(walk->path);
		entry.dir_fd = weft__walk_has(walk, WEFT_WALK_DIR_FD) ?
				       walk->dir_fd :
				       -1;
	}
	return walk->visit(&entry, walk->arg);
}

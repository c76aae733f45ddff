/* SPDX-License-Identifier: MIT */
/*
 * weft_walk(): opens the root, visits it in the calling task, and leaves the
 * rest to a crew (walk_any.c) or, in order, to the calling task
 * (walk_sorted.c).
 *
 * A root that is no directory fails to be opened, and is looked at by its name.
 * The root's descriptor is open for the whole call: all others are opened from
 * it.
 */
#include "fs/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "io/os/syscall.h"
#include "io/request/call.h"

static const unsigned FLAGS = WEFT_WALK_SORTED | WEFT_WALK_FOLLOW |
			      WEFT_WALK_ONE_DEVICE | WEFT_WALK_POST |
			      WEFT_WALK_DIR_FD;

/* The findings of a job about the root. */
struct root {
	struct weft__walk *walk;
	struct weft__tree_dir *dir;
	struct statx status;
	bool is_dir;
};

static int root_identify(struct weft__walk *walk, struct weft__tree_dir *dir)
{
	int r = weft__walk_identify(walk->tree.root_fd, &dir->device,
				    &dir->inode);

	walk->root_device = dir->device;
	return r;
}

static int64_t root_open(void *arg)
{
	struct root *root = arg;
	struct weft__walk *walk = root->walk;
	int r = weft__tree_open_root(&walk->tree, walk->dir_fd, walk->path);

	if (r >= 0) {
		walk->tree.root_fd = r;
		root->is_dir = true;
		root->status.stx_mode = S_IFDIR;
		r = root_identify(walk, root->dir);
		if (r < 0 || !walk->opts->status_mask)
			return r;
	} else if (r != -ENOTDIR && r != -ELOOP && r != -EACCES &&
		   !(r == -ENOENT && walk->tree.follows)) {
		return r;
	}
	if (weft__walk_status(walk, walk->dir_fd, walk->path, &root->status) <
	    0)
		return r < 0 ? r : -ENOENT;
	/* A directory that cannot be opened. */
	return r == -EACCES && S_ISDIR(root->status.stx_mode) ? r : 0;
}

static int root_visit(struct root *root)
{
	struct weft__walk *walk = root->walk;
	struct weft_walk_entry entry = {
		.path = "",
		.name = walk->path,
		.name_bytes = strlen(walk->path),
		.dir_fd = weft__walk_has(walk, WEFT_WALK_DIR_FD) ?
				  walk->dir_fd :
				  -1,
		.event = WEFT_WALK_ENTRY,
		.type = weft__dirent_type(root->status.stx_mode),
		.status = walk->opts->status_mask ? &root->status : NULL,
	};

	return walk->visit(&entry, walk->arg);
}

/* Takes over the root's record. */
static int walk_run(struct root *root)
{
	struct weft__walk *walk = root->walk;
	int r = root_visit(root);

	if (r >= 0 && root->is_dir && weft__walk_enters(walk, 0, r)) {
		if (weft__walk_has(walk, WEFT_WALK_SORTED))
			return weft__walk_sorted(walk, root->dir);
		return weft__tree_run(&walk->tree, root->dir);
	}
	if (r >= 0 && root->is_dir && weft__walk_has(walk, WEFT_WALK_POST)) {
		struct weft__walk_path path = { 0 };

		r = weft__walk_visit_dir(walk, &path, root->dir, -1,
					 WEFT_WALK_LEAVE, 0);
		weft__walk_path_fini(walk, &path);
	}
	weft__tree_dir_free(&walk->tree, root->dir);
	return r < 0 ? r : 0;
}

static int walk_begin(struct weft__walk *walk)
{
	struct root root = { .walk = walk };
	int64_t r;

	root.dir = weft__tree_dir_new(&walk->tree, NULL, "", 0);
	if (!root.dir)
		return -ENOMEM;
	r = weft_blocking_lane(&walk->tree.lane, root_open, &root);
	if (r < 0)
		weft__tree_dir_free(&walk->tree, root.dir);
	else
		r = walk_run(&root);
	if (walk->tree.root_fd >= 0)
		weft__syscall_close(walk->tree.root_fd);
	return (int)r;
}

int weft_walk(int dir_fd, const char *path, weft_walk_fn visit, void *arg,
	      const struct weft_walk_opts *opts)
{
	static const struct weft_walk_opts defaults = WEFT_WALK_OPTS_INIT;
	struct weft__walk walk = {
		.opts = opts ? opts : &defaults,
		.visit = visit,
		.arg = arg,
		.dir_fd = dir_fd,
		.path = path,
	};
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	if (walk.opts->size != sizeof(*opts) || (walk.opts->flags & ~FLAGS) ||
	    !visit)
		return -EINVAL;
	if (!path)
		return -EFAULT;
	weft__tree_init(&walk.tree, weft__walk_any, walk.opts->tasks);
	walk.tree.follows = weft__walk_has(&walk, WEFT_WALK_FOLLOW);
	return walk_begin(&walk);
}

/* SPDX-License-Identifier: MIT */
/*
 * Opening directories of a tree: from its root, by their path, in one call.
 *
 * The kernel refuses symbolic links on the path (RESOLVE_NO_SYMLINKS).  So no
 * descriptor is kept open for the directories above, and a directory that was
 * swapped for a link is not entered.  A path that is long or deep is opened in
 * stretches.  The start of the last one is kept as an anchor: the next
 * directory is near it, as a rule.
 *
 *	root --------- 64 levels ------> anchor --- up to 64 levels ---> dir
 *
 * A removal needs the parent of each directory, which is a second anchor.  It
 * does not take the place of the first: on the way up, each parent would have
 * to be opened from the root.
 *
 * Without openat2(2) each name of a path is opened from the one before it.
 *
 * Rejected
 *   To keep descriptors of directories with work below them: their number is
 *   that of levels, or they are closed and have to be opened from the root all
 *   the same.
 *   "..": leads out of the tree after a rename.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <limits.h>
#include <string.h>

#include "fs/tree.h"
#include "io/os/syscall.h"
#include "runtime/base/own_fd.h"

enum { LEVELS_MAX = 64 };

/* ---- One path --------------------------------------------------------- */

static int open_by_how(const struct weft__tree *tree, int dir_fd,
		       const char *path, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = resolve,
	};

	if (!tree->follows)
		how.flags |= O_NOFOLLOW;
	return weft__fd_or_error_above_stdio(
		weft__syscall_openat2(dir_fd, path, &how));
}

static int is_other_mount(int dir_fd, int fd)
{
	struct statx above, below;
	int r = weft__statx(dir_fd, "", AT_EMPTY_PATH, 0, &above);

	if (r == 0)
		r = weft__statx(fd, "", AT_EMPTY_PATH, 0, &below);
	if (r < 0)
		return r;
	/* A bind mount of the same device; since Linux 5.8. */
	if (below.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return 1;
	return above.stx_dev_major != below.stx_dev_major ||
	       above.stx_dev_minor != below.stx_dev_minor;
}

static int open_step(const struct weft__tree *tree, int dir_fd,
		     const char *name)
{
	int fd = weft__directory_openat(dir_fd, name,
					tree->follows ? 0 : O_NOFOLLOW);
	int r;

	if (fd < 0 || !tree->one_mount)
		return fd;
	r = is_other_mount(dir_fd, fd);
	if (r == 0)
		return fd;
	weft__syscall_close(fd);
	return r < 0 ? r : -EXDEV;
}

/* Changes the path. */
static int open_by_steps(const struct weft__tree *tree, int dir_fd, char *path)
{
	int at = dir_fd, fd;
	char *end;

	for (;; path = end + 1) {
		end = strchr(path, '/');
		if (end)
			*end = '\0';
		fd = open_step(tree, at, path);
		if (at != dir_fd)
			weft__syscall_close(at);
		if (fd < 0 || !end)
			return fd;
		at = fd;
	}
}

static int open_path(const struct weft__tree *tree, int dir_fd, char *path)
{
	uint64_t resolve = 0;

	if (tree->by_steps)
		return open_by_steps(tree, dir_fd, path);
	if (!tree->follows)
		resolve |= RESOLVE_NO_SYMLINKS;
	if (tree->one_mount)
		resolve |= RESOLVE_NO_XDEV;
	return open_by_how(tree, dir_fd, path, resolve);
}

/* Links on the caller's path to the root are followed. */
int weft__tree_open_root(struct weft__tree *tree, int dir_fd, const char *path)
{
	int r = open_by_how(tree, dir_fd, path, 0);

	/* Sandboxes refuse calls that they do not know with -EPERM. */
	tree->by_steps = r == -ENOSYS || r == -EPERM;
	if (tree->by_steps)
		r = weft__directory_openat(dir_fd, path,
					   tree->follows ? 0 : O_NOFOLLOW);
	return r;
}

/* ---- The hand --------------------------------------------------------- */

void weft__tree_hand_init(struct weft__tree_hand *hand, struct weft__tree *tree)
{
	hand->tree = tree;
	hand->stretch = hand->parent = (struct weft__tree_anchor){ 0, -1 };
	hand->chain = NULL;
	hand->chain_max = 0;
}

static void anchor_drop(struct weft__tree_anchor *anchor)
{
	if (anchor->fd >= 0)
		weft__syscall_close(anchor->fd);
}

void weft__tree_hand_fini(struct weft__tree_hand *hand)
{
	anchor_drop(&hand->stretch);
	anchor_drop(&hand->parent);
	weft__memory_free(hand->tree->memory, hand->chain,
			  hand->chain_max * sizeof(*hand->chain));
}

static void anchor_set(struct weft__tree_anchor *anchor,
		       const struct weft__tree_dir *dir, int fd)
{
	anchor_drop(anchor);
	*anchor = (struct weft__tree_anchor){ dir->id, fd };
}

/* Of a directory: an anchor's, the root's, or -1. */
static int anchor_find(const struct weft__tree_hand *hand,
		       const struct weft__tree_dir *dir)
{
	if (!dir->parent)
		return hand->tree->root_fd;
	if (dir->id == hand->parent.id)
		return hand->parent.fd;
	return dir->id == hand->stretch.id ? hand->stretch.fd : -1;
}

static bool chain_has_room(struct weft__tree_hand *hand, size_t count)
{
	struct weft__tree_dir **chain;
	size_t max = count * 2;

	if (weft__likely(count <= hand->chain_max))
		return true;
	chain = weft__memory_resize(hand->tree->memory, hand->chain,
				    hand->chain_max * sizeof(*chain),
				    max * sizeof(*chain));
	if (!chain)
		return false;
	hand->chain = chain;
	hand->chain_max = max;
	return true;
}

/* The directories from `dir` up to an anchor or the root, whose descriptor
 * *ret_from is.  Returns their number, or -ENOMEM. */
static ssize_t chain_fill(struct weft__tree_hand *hand,
			  struct weft__tree_dir *dir, int *ret_from)
{
	size_t count = 0;

	if (!chain_has_room(hand, dir->depth + 1))
		return -ENOMEM;
	for (; (*ret_from = anchor_find(hand, dir)) < 0; dir = dir->parent)
		hand->chain[count++] = dir;
	return (ssize_t)count;
}

/* Writes the path of a stretch, from the end of the chain on, which is not
 * empty.  Returns how many names are left. */
static size_t stretch_fill(struct weft__tree_hand *hand, size_t count)
{
	size_t at = 0, least = count > LEVELS_MAX ? count - LEVELS_MAX : 0;

	do {
		const struct weft__tree_dir *dir = hand->chain[--count];

		memcpy(hand->path + at, dir->name, dir->name_bytes);
		at += dir->name_bytes;
		hand->path[at++] = '/';
	} while (count > least &&
		 at + hand->chain[count - 1]->name_bytes < PATH_MAX);
	hand->path[at - 1] = '\0';
	return count;
}

int weft__tree_open(struct weft__tree_hand *hand, struct weft__tree_dir *dir)
{
	int from, fd;
	ssize_t filled = chain_fill(hand, dir, &from);
	size_t count;

	if (filled < 0)
		return (int)filled;
	if (filled == 0)
		return weft__directory_openat(from, ".", 0);
	for (count = (size_t)filled;;) {
		count = stretch_fill(hand, count);
		fd = open_path(hand->tree, from, hand->path);
		if (fd < 0 || count == 0)
			return fd;
		anchor_set(&hand->stretch, hand->chain[count], fd);
		from = fd;
	}
}

int weft__tree_open_parent(struct weft__tree_hand *hand,
			   const struct weft__tree_dir *dir)
{
	int fd = anchor_find(hand, dir->parent);

	if (fd >= 0)
		return fd;
	fd = weft__tree_open(hand, dir->parent);
	if (fd >= 0)
		anchor_set(&hand->parent, dir->parent, fd);
	return fd;
}

void weft__tree_keep_parent(struct weft__tree_hand *hand,
			    const struct weft__tree_dir *dir, int fd)
{
	anchor_set(&hand->parent, dir, fd);
}

int weft__tree_open_at(struct weft__tree_hand *hand, int parent_fd,
		       const struct weft__tree_dir *dir)
{
	if (dir->name_bytes >= sizeof(hand->path))
		return -ENAMETOOLONG;
	memcpy(hand->path, dir->name, dir->name_bytes + 1u);
	return open_path(hand->tree, parent_fd, hand->path);
}

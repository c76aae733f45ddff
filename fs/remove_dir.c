/* SPDX-License-Identifier: MIT */
/*
 * Removing directories, in jobs: each is read, its files are removed as they
 * are found, and the directories in it are pushed; the last of those to go
 * removes it.
 *
 * A directory is opened from its parent, and removed from it.  So the parent is
 * the hand's anchor, which the next directory shares, as a rule.
 *
 * A name may stand for another file than it did when it was read.  A directory
 * that has become a link or a file fails to open, and is removed as that; a
 * file that has become a directory fails to be removed, and is entered.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs/remove.h"
#include "io/os/syscall.h"

enum {
	/* How often a directory is read that is not empty afterwards. */
	PASSES_MAX = 16,
	/* Much has been noted: it is time to report it. */
	LOG_BYTES = 64 << 10,
};
#define JOB_NS WEFT_MS(2)

static int stopped(struct weft__removal *removal)
{
	int error;

	weft__lock_take(&removal->tree.lock);
	error = removal->stops ? removal->error : 0;
	weft__lock_drop(&removal->tree.lock);
	return error;
}

/* Notes the end of a file or, with name NULL, of the directory. */
static void removed(struct weft__remover *remover, struct weft__tree_dir *dir,
		    const char *name, bool is_dir, int r)
{
	if (r == -ENOENT)
		return;
	if (r == 0 && is_dir)
		remover->counts.directories++;
	else if (r == 0)
		remover->counts.files++;
	weft__remove_note(remover, dir, name, r);
}

/* ---- Directories that are done ---------------------------------------- */

/* Is the caller's name of the root still that of the directory that was
 * emptied? */
static int root_check(struct weft__removal *removal)
{
	struct statx named, open;
	int r = weft__statx(removal->dir_fd, removal->path, AT_SYMLINK_NOFOLLOW,
			    STATX_INO, &named);

	if (r == 0)
		r = weft__statx(removal->tree.root_fd, "", AT_EMPTY_PATH,
				STATX_INO, &open);
	if (r < 0)
		return r;
	return named.stx_ino == open.stx_ino &&
			       named.stx_dev_major == open.stx_dev_major &&
			       named.stx_dev_minor == open.stx_dev_minor ?
		       0 :
		       -ENOENT;
}

/* The descriptor and the name to remove a directory with. */
static int place_of(struct weft__remover *remover, struct weft__tree_dir *dir,
		    int *ret_fd, const char **ret_name)
{
	struct weft__removal *removal = remover->removal;

	*ret_name = dir->name;
	if (dir->parent) {
		*ret_fd = weft__tree_open_parent(&remover->hand, dir);
		/* A directory above was swapped: what was in it is gone. */
		if (*ret_fd == -ENOTDIR || *ret_fd == -ELOOP)
			return -ENOENT;
		return *ret_fd < 0 ? *ret_fd : 0;
	}
	*ret_fd = removal->dir_fd;
	*ret_name = removal->path;
	return root_check(removal);
}

/* Removes what has taken the place of a directory.  False: it is a directory
 * again. */
static bool swapped_remove(struct weft__remover *remover,
			   struct weft__tree_dir *dir, int fd, const char *name)
{
	int r = weft__unlinkat(fd, name, 0);

	if (r == -EISDIR && ++dir->passes < PASSES_MAX)
		return false;
	removed(remover, dir, NULL, false, r);
	return true;
}

/* Removes an empty directory.  False: it is to be read again. */
static bool dir_remove(struct weft__remover *remover,
		       struct weft__tree_dir *dir)
{
	const char *name;
	int fd, r = place_of(remover, dir, &fd, &name);

	if (r == 0)
		r = weft__unlinkat(fd, name, AT_REMOVEDIR);
	if (r == -ENOTDIR)
		return swapped_remove(remover, dir, fd, name);
	if ((r == -ENOTEMPTY || r == -EEXIST) && ++dir->passes < PASSES_MAX)
		return false;
	removed(remover, dir, NULL, true, r);
	return true;
}

static bool stays(const struct weft__removal *removal,
		  const struct weft__tree_dir *dir)
{
	return dir->fails || dir->gone ||
	       (!dir->parent && (removal->opts->flags & WEFT_REMOVE_CONTENTS));
}

/* The reading of a directory has ended; so may have the removal of its
 * ancestors. */
static void dir_finish(struct weft__remover *remover,
		       struct weft__tree_dir *dir)
{
	struct weft__removal *removal = remover->removal;
	struct weft__tree *tree = &removal->tree;

	while (weft__tree_drop(tree, dir)) {
		struct weft__tree_dir *parent = dir->parent;

		if (!stays(removal, dir) && !dir_remove(remover, dir)) {
			dir->pending = 1;
			weft__tree_push(tree, NULL, dir, true);
			return;
		}
		if (dir->fails && parent) {
			weft__lock_take(&tree->lock);
			parent->fails = true;
			weft__lock_drop(&tree->lock);
		}
		weft__tree_dir_free(tree, dir);
		if (!parent) {
			weft__tree_end(tree);
			return;
		}
		dir = parent;
	}
}

/* ---- Contents of a directory ------------------------------------------ */

static bool dir_found(struct weft__remover *remover, struct weft__tree_dir *dir,
		      const char *name, struct weft__tree_dir **first)
{
	struct weft__tree_dir *found = weft__tree_dir_new(
		&remover->removal->tree, dir, name, strlen(name));

	if (!found)
		return false;
	found->next = *first;
	*first = found;
	return true;
}

/* Removes the files among the records, and puts the directories before
 * *first. */
static void records_remove(struct weft__remover *remover,
			   struct weft__tree_dir *dir, int fd, size_t bytes,
			   struct weft__tree_dir **first)
{
	const struct weft__dirent *dirent;

	for (size_t at = 0; at < bytes; at += dirent->bytes) {
		int r = -EISDIR;

		dirent = (const void *)(remover->records + at);
		if (weft__dirent_is_dots(dirent))
			continue;
		if (dirent->type != DT_DIR)
			r = weft__unlinkat(fd, dirent->name, 0);
		if (r != -EISDIR)
			removed(remover, dir, dirent->name, false, r);
		else if (!dir_found(remover, dir, dirent->name, first))
			weft__remove_stop(remover->removal, -ENOMEM);
	}
}

/* One that could not be opened.  False: it is to be tried again. */
static bool dir_refused(struct weft__remover *remover,
			struct weft__tree_dir *dir, int error)
{
	const char *name;
	int fd, r = place_of(remover, dir, &fd, &name);

	if (r < 0)
		error = r;
	else if (error == -ENOTDIR || error == -ELOOP)
		return swapped_remove(remover, dir, fd, name);
	else if (error == -EACCES &&
		 weft__unlinkat(fd, name, AT_REMOVEDIR) == 0)
		error = 0;
	removed(remover, dir, NULL, true, error);
	return true;
}

static int dir_open(struct weft__remover *remover, struct weft__tree_dir *dir)
{
	int fd;

	if (dir->fd >= 0)
		return dir->fd;
	if (!dir->parent)
		return weft__tree_open(&remover->hand, dir);
	fd = weft__tree_open_parent(&remover->hand, dir);
	return fd < 0 ? fd : weft__tree_open_at(&remover->hand, fd, dir);
}

/* The reading of a directory has ended, with this result. */
static void dir_end(struct weft__remover *remover, struct weft__tree_dir *dir,
		    struct weft__tree_dir *first, int r)
{
	struct weft__tree *tree = &remover->removal->tree;

	if (first)
		weft__tree_keep_parent(&remover->hand, dir, dir->fd);
	else
		weft__syscall_close(dir->fd);
	dir->fd = -1;
	if (dir->halfway)
		weft__tree_halfway_end(tree, dir);
	if (first)
		weft__tree_push(tree, first, NULL, true);
	if (r < 0 && r != -ENOENT)
		removed(remover, dir, NULL, true, r);
	dir_finish(remover, dir);
}

static void dir_empty(struct weft__remover *remover, struct weft__tree_dir *dir,
		      weft_nsec until_ns)
{
	struct weft__tree *tree = &remover->removal->tree;
	struct weft__tree_dir *first = NULL;
	int fd = dir_open(remover, dir);
	ssize_t r;

	if (fd < 0) {
		dir->gone = dir_refused(remover, dir, fd);
		if (dir->gone)
			dir_finish(remover, dir);
		else
			weft__tree_push(tree, NULL, dir, true);
		return;
	}
	dir->fd = fd;
	while ((r = weft__dirents_read(fd, remover->records,
				       sizeof(remover->records))) > 0) {
		records_remove(remover, dir, fd, (size_t)r, &first);
		if (weft_now() >= until_ns || stopped(remover->removal)) {
			weft__tree_push(tree, first, dir, true);
			return;
		}
	}
	dir_end(remover, dir, first, (int)r);
}

/* ---- Jobs ------------------------------------------------------------- */

static void counts_add(struct weft__remover *remover)
{
	struct weft__removal *removal = remover->removal;

	weft__lock_take(&removal->tree.lock);
	removal->counts.files += remover->counts.files;
	removal->counts.directories += remover->counts.directories;
	removal->counts.failed += remover->counts.failed;
	weft__lock_drop(&removal->tree.lock);
	remover->counts = (struct weft_remove_counts){ 0 };
}

int64_t weft__remove_some(void *arg)
{
	struct weft__remover *remover = arg;
	struct weft__removal *removal = remover->removal;
	weft_nsec until_ns = weft_now() + JOB_NS;
	struct weft__tree_dir *dir;

	while (!stopped(removal) && (dir = weft__tree_pop(&removal->tree))) {
		dir_empty(remover, dir, until_ns);
		if (weft_now() >= until_ns || remover->log.bytes > LOG_BYTES)
			break;
	}
	counts_add(remover);
	return stopped(removal);
}

/* Notes are kept in the directory's name: its path is that of the root. */
static int root_unlink(struct weft__remover *remover, int error)
{
	struct weft__removal *removal = remover->removal;
	bool stays = removal->opts->flags & WEFT_REMOVE_CONTENTS;
	bool is_dir = error == -EACCES;
	struct weft__tree_dir *dir;

	if (!is_dir && (removal->had_slash || stays))
		return -ENOTDIR;
	dir = weft__tree_dir_new(&removal->tree, NULL, "", 0);
	if (!dir)
		return -ENOMEM;
	if (!is_dir)
		error = weft__unlinkat(removal->dir_fd, removal->path, 0);
	else if (!stays && weft__unlinkat(removal->dir_fd, removal->path,
					  AT_REMOVEDIR) == 0)
		error = 0;
	removed(remover, dir, NULL, is_dir, error);
	weft__tree_dir_free(&removal->tree, dir);
	counts_add(remover);
	return error;
}

int64_t weft__remove_root(void *arg)
{
	struct weft__remover *remover = arg;
	struct weft__removal *removal = remover->removal;
	int r = weft__tree_open_root(&removal->tree, removal->dir_fd,
				     removal->path);

	if (r >= 0) {
		removal->tree.root_fd = r;
		return 1;
	}
	if (r != -ENOTDIR && r != -ELOOP && r != -EACCES)
		return r;
	return root_unlink(remover, r);
}

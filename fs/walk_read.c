/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>

#include "fs/walk.h"
#include "io/os/syscall.h"

int weft__walk_identify(int fd, uint64_t *ret_device, uint64_t *ret_inode)
{
	struct statx status;
	int r = weft__statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status);

	if (r < 0)
		return r;
	*ret_device = (uint64_t)status.stx_dev_major << 32 |
		      status.stx_dev_minor;
	*ret_inode = status.stx_ino;
	return 0;
}

static int check(struct weft__walk *walk, int fd, struct weft__tree_dir *dir)
{
	int r = weft__walk_identify(fd, &dir->device, &dir->inode);

	if (r < 0)
		return r;
	if (weft__walk_has(walk, WEFT_WALK_ONE_DEVICE) &&
	    dir->device != walk->root_device)
		return -ESRCH;
	if (!walk->tree.follows)
		return 0;
	for (const struct weft__tree_dir *above = dir->parent; above;
	     above = above->parent)
		if (above->device == dir->device && above->inode == dir->inode)
			return -ELOOP;
	return 0;
}

int weft__walk_open(struct weft__walk *walk, struct weft__tree_hand *hand,
		    struct weft__tree_dir *dir)
{
	int fd = weft__tree_open(hand, dir), r;

	if (fd < 0 || !(walk->opts->flags &
			(WEFT_WALK_ONE_DEVICE | WEFT_WALK_FOLLOW)))
		return fd;
	r = check(walk, fd, dir);
	if (r == 0)
		return fd;
	weft__syscall_close(fd);
	return r;
}

int weft__walk_status(struct weft__walk *walk, int dir_fd, const char *name,
		      struct statx *ret_status)
{
	unsigned mask = walk->opts->status_mask | STATX_TYPE;

	if (walk->tree.follows &&
	    weft__statx(dir_fd, name, 0, mask, ret_status) == 0)
		return 0;
	return weft__statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, mask, ret_status);
}

static bool must_look(const struct weft__walk *walk, uint8_t type)
{
	return walk->opts->status_mask || type == DT_UNKNOWN ||
	       (walk->tree.follows && type == DT_LNK);
}

void weft__walk_look(struct weft__walk *walk, int fd,
		     struct weft__walk_records records)
{
	struct statx one, *status = records.statuses ? records.statuses : &one;
	struct weft__dirent *dirent;
	int r;

	for (size_t at = 0; at < records.bytes; at += dirent->bytes) {
		dirent = (struct weft__dirent *)(void *)(records.at + at);
		dirent->offset = 0;
		if (!must_look(walk, dirent->type) ||
		    weft__dirent_is_dots(dirent))
			continue;
		r = weft__walk_status(walk, fd, dirent->name, status);
		if (r < 0)
			dirent->offset = r;
		else
			dirent->type = weft__dirent_type(status->stx_mode);
		status += records.statuses != NULL;
	}
}

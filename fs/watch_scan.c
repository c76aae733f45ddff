/* SPDX-License-Identifier: MIT */
/*
 * Directories as the file system has them now: opened, watched, and read.  On
 * a thread of the pool: each call may wait for the disk.
 *
 * A path longer than PATH_MAX is opened in pieces.  Which links and renames it
 * meets on its way does not matter: the wd tells whether it came to the right
 * directory.
 */
#include "fs/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/os/syscall.h"
#include "runtime/base/memory.h"

/* How many directories are read before the task may notice a deadline. */
enum { SCANS_AT_ONCE = 64 };

/* As the kernel gives it. */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* ---- Opening ------------------------------------------------------------- */

/* The mask for the kernel.  Nested roots share an inode's watch, so masks
 * add up. */
static uint32_t mask_of(const struct weft__watch_dir *dir)
{
	const struct weft__watch_root *root = dir->root;
	uint32_t mask = IN_MASK_ADD | IN_EXCL_UNLINK;

	if (root->is_directory)
		mask |= IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
	if (root->kinds & WEFT_FS_CHANGED)
		mask |= IN_MODIFY;
	if (root->kinds & WEFT_FS_CLOSED)
		mask |= IN_CLOSE_WRITE;
	/* Of a file that was removed or replaced it is the only event, while
	 * it is open somewhere or has another name. */
	if ((root->kinds & WEFT_FS_STATUS) || !root->is_directory)
		mask |= IN_ATTRIB;
	if (!dir->parent)
		mask |= IN_DELETE_SELF | IN_MOVE_SELF;
	return mask;
}

/* The wd of an open file, or an error. */
static int watch_fd(const struct weft_fs_watch *watch, int fd, uint32_t mask)
{
	char path[sizeof("/proc/self/fd/-2147483648")];
	int wd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	wd = inotify_add_watch(watch->fd, path, mask);
	return wd < 0 ? -errno : wd;
}

static int open_path(int dir_fd, const char *path, int flags)
{
	int fd = openat(dir_fd, path, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The entry of a directory, if it is one of the same mount; no link. */
static int open_entry(int dir_fd, const char *name)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV,
	};
	int fd = weft__syscall_openat2(dir_fd, name, &how);

	/* An old kernel, or a filter that does not know the call. */
	if (fd == -ENOSYS || fd == -EPERM)
		fd = open_path(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	return fd;
}

static size_t path_bytes(const struct weft__watch_dir *dir)
{
	size_t bytes = 0;

	for (; dir; dir = dir->parent)
		bytes += dir->name_bytes + 1;
	return bytes;
}

/* Opens a path in pieces of less than PATH_MAX; *path is changed. */
static int open_pieces(char *path, size_t bytes, int flags)
{
	int fd = AT_FDCWD;

	while (bytes >= PATH_MAX) {
		char *end = memrchr(path, '/', PATH_MAX - 1);
		int next;

		*end = 0;
		next = open_path(fd, path == end ? "/" : path,
				 O_PATH | O_DIRECTORY);
		if (fd >= 0)
			close(fd);
		if (next < 0)
			return next;
		fd = next;
		bytes -= (size_t)(end + 1 - path);
		path = end + 1;
	}
	if (fd == AT_FDCWD)
		return open_path(fd, path, flags);
	flags = open_path(fd, path, flags);
	close(fd);
	return flags;
}

static int open_by_path(const struct weft_fs_watch *watch,
			const struct weft__watch_dir *dir, int flags)
{
	size_t bytes = path_bytes(dir);
	char *path = weft__memory_new(watch->memory, bytes), *at;
	int fd;

	if (!path)
		return -ENOMEM;
	at = path + bytes;
	for (const struct weft__watch_dir *up = dir; up; up = up->parent) {
		*--at = up == dir ? 0 : '/';
		at -= up->name_bytes;
		memcpy(at, up->name, up->name_bytes);
	}
	fd = open_pieces(path, bytes, flags);
	weft__memory_free(watch->memory, path, bytes);
	return fd;
}

/* The path leads elsewhere, or nowhere: events are still to come. */
static bool is_old(int r)
{
	return r == -ENOENT || r == -ESTALE || r == -ENOTDIR || r == -ELOOP;
}

/* The wd is that of nothing that the tree knows. */
static void give_back(struct weft_fs_watch *watch, int wd)
{
	if (!weft__watch_by_wd(watch, wd))
		(void)inotify_rm_watch(watch->fd, wd);
}

/* The directory that has the wd of `dir`: a descriptor, or an error. */
static int open_dir(struct weft_fs_watch *watch,
		    const struct weft__watch_dir *dir, int flags)
{
	int fd = open_by_path(watch, dir, flags | O_DIRECTORY), wd;

	if (fd < 0)
		return fd;
	wd = watch_fd(watch, fd, mask_of(dir));
	if (wd >= 0 && wd == dir->wd)
		return fd;
	if (wd >= 0)
		give_back(watch, wd);
	close(fd);
	return wd < 0 ? wd : -ESTALE;
}

/* ---- A file by itself --------------------------------------------------- */

/* By its number, if it cannot be watched (any more). */
static bool is_another(const struct weft__watch_root *root, int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 &&
	       (status.st_dev != root->dev || status.st_ino != root->ino);
}

/* The number of a file may change, as on an overlay that copies it; its wd does
 * not.  Other errors say nothing of the file.  *ret_wd: of what has the name,
 * or an error. */
static bool file_has_gone(struct weft_fs_watch *watch,
			  const struct weft__watch_dir *dir, int *ret_wd)
{
	int fd = open_by_path(watch, dir, O_PATH | O_NOFOLLOW);
	bool gone;

	*ret_wd = fd;
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR;
	*ret_wd = watch_fd(watch, fd, mask_of(dir));
	gone = *ret_wd < 0 ? is_another(dir->root, fd) : *ret_wd != dir->wd;
	close(fd);
	return gone;
}

/* An event that says so itself, as that of a move, comes first. */
static void file_look(struct weft_fs_watch *watch, struct weft__watch_dir *dir)
{
	int wd;
	bool waits;

	if (!file_has_gone(watch, dir, &wd))
		return;
	/* A look after the other watch has ended would find an event of it. */
	waits = weft__syscall_is_readable(watch->fd);
	if (wd >= 0)
		give_back(watch, wd);
	if (waits)
		weft__watch_dir_later(watch, dir, WEFT__SCAN_CHECK);
	else
		weft__watch_root_gone(watch, dir, -ENOENT);
}

/* ---- Watching ------------------------------------------------------------ */

int weft__watch_bind_root(struct weft_fs_watch *watch,
			  struct weft__watch_dir *dir)
{
	int fd = open_path(AT_FDCWD, dir->name, O_PATH), wd;
	struct stat status;

	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0 ||
	    (!S_ISDIR(status.st_mode) && dir->root->is_tree)) {
		close(fd);
		return -EINVAL;
	}
	dir->root->is_directory = S_ISDIR(status.st_mode);
	dir->root->dev = status.st_dev;
	dir->root->ino = status.st_ino;
	wd = watch_fd(watch, fd, mask_of(dir));
	close(fd);
	if (wd < 0)
		return wd;
	if (weft__watch_by_wd(watch, wd))
		return -EEXIST;
	weft__watch_set_wd(watch, dir, wd);
	/* It may have been replaced since it was opened. */
	if (!dir->root->is_directory)
		file_look(watch, dir);
	return 0;
}

static void drop_and_tell(struct weft_fs_watch *watch,
			  struct weft__watch_dir *dir)
{
	weft__watch_emit(watch, WEFT_FS_REMOVED, dir, NULL, true, 0);
	weft__watch_dir_drop(watch, dir);
}

/* WAT2: a directory that has this wd under another name is dropped. */
static int take_over(struct weft_fs_watch *watch,
		     struct weft__watch_dir *parent, int wd)
{
	struct weft__watch_dir *owner = weft__watch_by_wd(watch, wd);

	if (!owner)
		return 0;
	if (owner->root != parent->root || !owner->parent)
		return -EEXIST;
	for (struct weft__watch_dir *up = parent; up; up = up->parent)
		if (up == owner) {
			weft__watch_dir_later(watch, parent, WEFT__SCAN_CHECK);
			return -ESTALE;
		}
	weft__watch_dir_later(watch, owner->parent, WEFT__SCAN_CHECK);
	weft__watch_set_wd(watch, owner, -1);
	drop_and_tell(watch, owner);
	return 0;
}

static int bind_fd(struct weft_fs_watch *watch, struct weft__watch_dir *parent,
		   const char *name, int fd)
{
	struct weft__watch_dir *dir = weft__watch_child(watch, parent, name);
	uint32_t mask = mask_of(parent) & ~(uint32_t)(IN_DELETE_SELF |
						      IN_MOVE_SELF);
	int wd = watch_fd(watch, fd, mask), r;

	if (dir && wd >= 0 && dir->wd == wd)
		return 0;
	if (dir) {
		/* Another one by now.  It may have been beneath the old one. */
		drop_and_tell(watch, dir);
		wd = watch_fd(watch, fd, mask);
	}
	if (wd < 0)
		return wd;
	r = take_over(watch, parent, wd);
	if (r < 0)
		return r;
	dir = weft__watch_dir_new(watch, parent->root, parent, name);
	if (!dir) {
		(void)inotify_rm_watch(watch->fd, wd);
		return -ENOMEM;
	}
	weft__watch_set_wd(watch, dir, wd);
	return 1;
}

static int bind_at(struct weft_fs_watch *watch, struct weft__watch_dir *parent,
		   int dir_fd, const char *name)
{
	int fd = open_entry(dir_fd, name), r;

	if (fd < 0)
		return fd;
	r = bind_fd(watch, parent, name, fd);
	close(fd);
	return r;
}

int weft__watch_bind(struct weft_fs_watch *watch,
		     struct weft__watch_dir *parent, const char *name)
{
	int fd = open_dir(watch, parent, O_PATH), r;

	if (fd < 0) {
		weft__watch_dir_later(watch, parent, WEFT__SCAN_CHECK);
		return is_old(fd) ? -ESTALE : fd;
	}
	r = bind_at(watch, parent, fd, name);
	close(fd);
	if (r > 0)
		weft__watch_dir_due(watch,
				    weft__watch_child(watch, parent, name),
				    WEFT__SCAN_FRESH);
	return is_old(r) ? -ENOENT : r;
}

int weft__watch_verify(struct weft_fs_watch *watch,
		       struct weft__watch_dir *dir)
{
	int fd = open_dir(watch, dir, O_PATH);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (fd == -ESTALE)
		return -EEXIST;
	if (is_old(fd))
		weft__watch_dir_later(watch, dir->parent, WEFT__SCAN_CHECK);
	return fd;
}

/* ---- Reading ------------------------------------------------------------- */

static bool is_directory(int dir_fd, const struct entry *entry)
{
	struct stat status;

	if (entry->type != DT_UNKNOWN)
		return entry->type == DT_DIR;
	return fstatat(dir_fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) ==
		       0 &&
	       S_ISDIR(status.st_mode);
}

/* Reports a directory of a tree that is not watched, unless it is gone, or
 * another mount. */
static void cannot_watch(struct weft_fs_watch *watch,
			 const struct weft__watch_dir *dir, const char *name,
			 int error)
{
	if (is_old(error) || error == -EXDEV)
		return;
	/* One that only keeps a directory from being read hides no other. */
	if (!watch->add_error || watch->add_error == -EACCES ||
	    watch->add_error == -EPERM)
		watch->add_error = error;
	weft__watch_emit(watch, WEFT_FS_UNWATCHED, dir, name, true, error);
}

static void scan_directory(struct weft_fs_watch *watch,
			   struct weft__watch_dir *dir, int fd,
			   const char *name, enum weft__watch_scan scan)
{
	int r = bind_at(watch, dir, fd, name);
	struct weft__watch_dir *child = weft__watch_child(watch, dir, name);

	if (r == 1 || scan == WEFT__SCAN_FRESH)
		if (scan != WEFT__SCAN_QUIET)
			weft__watch_emit(watch, WEFT_FS_CREATED, dir, name,
					 true, 0);
	if (r < 0) {
		cannot_watch(watch, dir, name, r);
		return;
	}
	child->seen = watch->scans;
	if (scan == WEFT__SCAN_QUIET)
		weft__watch_dir_due(watch, child, WEFT__SCAN_QUIET);
	else if (r == 1)
		weft__watch_dir_due(watch, child, WEFT__SCAN_FRESH);
}

static void scan_entry(struct weft_fs_watch *watch, struct weft__watch_dir *dir,
		       int fd, const struct entry *entry,
		       enum weft__watch_scan scan)
{
	if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
		return;
	if (is_directory(fd, entry))
		scan_directory(watch, dir, fd, entry->name, scan);
	else if (scan == WEFT__SCAN_FRESH)
		weft__watch_emit(watch, WEFT_FS_CREATED, dir, entry->name,
				 false, 0);
}

/* Directories that were not seen are no longer there. */
static void drop_unseen(struct weft_fs_watch *watch,
			struct weft__watch_dir *dir)
{
	struct weft__watch_dir *child = dir->first, *next;

	for (; child; child = next) {
		next = child->next;
		if (child->seen != watch->scans)
			drop_and_tell(watch, child);
	}
}

static int scan_entries(struct weft_fs_watch *watch,
			struct weft__watch_dir *dir, int fd,
			enum weft__watch_scan scan)
{
	watch->scans++;
	for (;;) {
		long n = syscall(SYS_getdents64, fd, watch->entries,
				 sizeof(watch->entries));
		const struct entry *entry;

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		for (long at = 0; at < n; at += entry->bytes) {
			entry = (const void *)(watch->entries + at);
			scan_entry(watch, dir, fd, entry, scan);
		}
	}
	drop_unseen(watch, dir);
	return 0;
}

/* As cannot_watch(), once until it can be read. */
static void cannot_read(struct weft_fs_watch *watch,
			struct weft__watch_dir *dir, int error)
{
	if (dir->unread)
		return;
	cannot_watch(watch, dir, NULL, error);
	dir->unread = !is_old(error);
}

static void scan_run(struct weft_fs_watch *watch, struct weft__watch_dir *dir,
		     enum weft__watch_scan scan)
{
	int fd = open_dir(watch, dir, O_RDONLY), r;

	if (fd < 0) {
		weft__watch_dir_later(watch, dir, scan);
		cannot_read(watch, dir, fd);
		return;
	}
	r = scan_entries(watch, dir, fd, scan);
	close(fd);
	if (r < 0)
		cannot_read(watch, dir, r);
	else
		dir->unread = false;
}

void weft__watch_scan_due(struct weft_fs_watch *watch)
{
	for (int i = 0; i < SCANS_AT_ONCE && weft__watch_scans(watch); i++) {
		enum weft__watch_scan scan;
		struct weft__watch_dir *dir =
			weft__watch_due_take(watch, &scan);

		if (dir->root->is_tree)
			scan_run(watch, dir, scan);
		else if (!dir->root->is_directory)
			file_look(watch, dir);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Resolving the path of a follow, with watches of all that it depends on.
 *
 * A directory that cannot be watched makes the follow look every second; so
 * does a file system whose changes inotify may not see, which are those of the
 * network and of FUSE.
 */
#include "fs/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/own_fd.h"

enum { LINKS_MAX = 40 };

static const uint32_t NAME_EVENTS = IN_CREATE | IN_DELETE | IN_MOVED_FROM |
				    IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF |
				    IN_MOVE_SELF | IN_MASK_ADD;
static const uint32_t FILE_EVENTS = IN_MODIFY | IN_ATTRIB | IN_MASK_ADD;

/* ---- Watches ------------------------------------------------------------- */

/* Changes by others are not seen there. */
static bool is_remote(const char *path)
{
	static const uint32_t kinds[] = {
		0x6969,	    /* NFS */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB2 */
		0x517b,	    /* SMB */
		0x65735546, /* FUSE */
		0x01021997, /* 9p */
		0x00c36400, /* Ceph */
		0x5346414f, /* AFS */
		0x6b414653, /* AFS */
		0x01161970, /* GFS2 */
		0x7461636f, /* OCFS2 */
		0x0bd00bd0, /* Lustre */
	};
	struct statfs status;

	if (statfs(path, &status) < 0)
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((uint32_t)status.f_type == kinds[i])
			return true;
	return false;
}

static void name_watch(struct weft_follow *follow, const char *directory,
		       const char *name)
{
	struct weft__follow_name *at = follow->names;
	int wd = -1;

	if (follow->notices >= 0)
		wd = inotify_add_watch(follow->notices, directory, NAME_EVENTS);
	if (wd < 0) {
		follow->polls = true;
		return;
	}
	for (; at < follow->names + follow->names_count; at++)
		if (at->wd == wd && strcmp(at->name, name) == 0) {
			at->used = true;
			return;
		}
	if (follow->names_count == WEFT__FOLLOW_NAMES_MAX) {
		follow->polls = true;
		return;
	}
	at->wd = wd;
	at->used = true;
	snprintf(at->name, sizeof(at->name), "%s", name);
	follow->names_count++;
}

static bool wd_is_used(const struct weft_follow *follow, int wd)
{
	for (int i = 0; i < follow->names_count; i++)
		if (follow->names[i].used && follow->names[i].wd == wd)
			return true;
	return false;
}

/* Those that the path no longer goes by. */
static void names_sweep(struct weft_follow *follow)
{
	int kept = 0;

	for (int i = 0; i < follow->names_count; i++) {
		struct weft__follow_name *name = &follow->names[i];

		if (name->used)
			follow->names[kept++] = *name;
		else if (!wd_is_used(follow, name->wd))
			(void)inotify_rm_watch(follow->notices, name->wd);
	}
	follow->names_count = kept;
}

static int file_watch(struct weft_follow *follow, int fd)
{
	char path[sizeof("/proc/self/fd/-2147483648")];
	int wd = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (follow->notices >= 0)
		wd = inotify_add_watch(follow->notices, path, FILE_EVENTS);
	if (wd < 0 || is_remote(path))
		follow->polls = true;
	return wd;
}

/* ---- The path ------------------------------------------------------------ */

/* Takes the next name off what is left: 1; 0, there is none; -1, no file can
 * have that path. */
static int left_take(struct weft_follow *follow, char name[NAME_MAX + 1])
{
	char *at = follow->left + strspn(follow->left, "/");
	size_t bytes = strcspn(at, "/");

	if (bytes == 0)
		return at == follow->left ? 0 : -1;
	if (bytes > NAME_MAX)
		return -1;
	memcpy(name, at, bytes);
	name[bytes] = 0;
	at += bytes;
	memmove(follow->left, at, strlen(at) + 1);
	return 1;
}

static bool done_add(struct weft_follow *follow, const char *name)
{
	size_t bytes = strlen(follow->done), room = sizeof(follow->done);
	int n = snprintf(follow->done + bytes, room - bytes, "%s%s",
			 bytes && follow->done[bytes - 1] != '/' ? "/" : "",
			 name);

	return n >= 0 && (size_t)n < room - bytes;
}

/* Replaces the link, whose directory is `bytes` long, by what it says. */
static bool link_follow(struct weft_follow *follow, size_t bytes)
{
	char target[PATH_MAX];
	ssize_t n = readlink(follow->done, target, sizeof(target) - 1);
	size_t left = strlen(follow->left);

	if (n <= 0 || (size_t)n + left + 1 > sizeof(follow->left))
		return false;
	memmove(follow->left + n, follow->left, left + 1);
	memcpy(follow->left, target, (size_t)n);
	follow->done[target[0] == '/' ? 0 : bytes] = 0;
	if (target[0] == '/')
		(void)done_add(follow, "/");
	return true;
}

/* Watches the names on the way.  False: one is missing. */
static bool walk(struct weft_follow *follow)
{
	char name[NAME_MAX + 1];
	int links = 0, taken;

	snprintf(follow->left, sizeof(follow->left), "%s", follow->path);
	snprintf(follow->done, sizeof(follow->done), "%s",
		 follow->path[0] == '/' ? "/" : "");
	while ((taken = left_take(follow, name)) > 0) {
		size_t bytes = strlen(follow->done);
		struct stat status;

		name_watch(follow, bytes ? follow->done : ".", name);
		if (!done_add(follow, name) || lstat(follow->done, &status) < 0)
			return false;
		if (S_ISLNK(status.st_mode) &&
		    (++links > LINKS_MAX || !link_follow(follow, bytes)))
			return false;
	}
	return taken == 0;
}

/* ---- The file ------------------------------------------------------------ */

static bool is_same(int fd, const struct stat *status)
{
	struct stat other;

	return fd >= 0 && fstat(fd, &other) == 0 &&
	       other.st_dev == status->st_dev && other.st_ino == status->st_ino;
}

static void next_drop(struct weft_follow *follow)
{
	if (follow->next_fd < 0)
		return;
	close(follow->next_fd);
	if (follow->next_wd >= 0)
		(void)inotify_rm_watch(follow->notices, follow->next_wd);
	follow->next_fd = follow->next_wd = -1;
	follow->switching = false;
}

/* The files of proc and sysfs have bytes, but no size that tells of a cut. */
static bool has_size(int fd)
{
	enum { PROC = 0x9fa0, SYSFS = 0x62656572 };
	struct statfs status;

	return fstatfs(fd, &status) == 0 && status.f_type != PROC &&
	       status.f_type != SYSFS;
}

static bool is_followed(int fd, const struct stat *status)
{
	return S_ISREG(status->st_mode) && has_size(fd);
}

static bool is_fatal(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* A file, or an error if there is none. */
static int file_open(const struct weft_follow *follow, struct stat *ret_status)
{
	/* O_NONBLOCK: it may be a FIFO. */
	int fd = weft__fd_above_stdio(open(
		follow->done, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_status) == 0 && is_followed(fd, ret_status))
		return fd;
	close(fd);
	return -EINVAL;
}

/* The name does not mean it any more; but a writer may have been there. */
static bool next_has_bytes(const struct weft_follow *follow)
{
	struct stat status;

	return follow->next_fd >= 0 && fstat(follow->next_fd, &status) == 0 &&
	       status.st_size > 0;
}

int weft__follow_resolve(struct weft_follow *follow)
{
	struct stat status;
	bool found;
	int fd;

	follow->polls = follow->notices < 0;
	for (int i = 0; i < follow->names_count; i++)
		follow->names[i].used = false;
	found = walk(follow);
	names_sweep(follow);
	fd = found ? file_open(follow, &status) : -ENOENT;
	if (is_fatal(fd))
		return fd;
	if (next_has_bytes(follow) &&
	    (fd < 0 || !is_same(follow->next_fd, &status))) {
		if (fd >= 0)
			close(fd);
		return 1;
	}
	if (fd < 0) {
		next_drop(follow);
		if (!follow->missing)
			follow->news |= WEFT_FOLLOW_MISSING;
		follow->missing = true;
		return 0;
	}
	follow->missing = false;
	if (is_same(follow->fd, &status)) {
		close(fd);
		next_drop(follow);
		if (follow->wd < 0 || is_remote(follow->done))
			follow->polls = true;
		return 0;
	}
	if (is_same(follow->next_fd, &status)) {
		close(fd);
		return 0;
	}
	next_drop(follow);
	follow->next_fd = fd;
	follow->size = status.st_size;
	follow->next_wd = file_watch(follow, fd);
	return 0;
}

int weft__follow_take(struct weft_follow *follow)
{
	int flags = fcntl(follow->fd, F_GETFL);
	struct stat status;

	if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	if (fstat(follow->fd, &status) < 0 ||
	    !is_followed(follow->fd, &status))
		return -EINVAL;
	follow->size = status.st_size;
	follow->polls = follow->notices < 0;
	follow->wd = file_watch(follow, follow->fd);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Directories on the way: making all that are missing, and opening the parent
 * of a name.
 *
 * weft_mkdir_all() goes from one directory to the next by descriptors
 * (O_PATH).  Another process that renames a directory on the way takes the
 * walker along, and does not lead it elsewhere.  Of each part
 *
 *	mkdirat() made it     it is opened with O_NOFOLLOW: a link that took its
 *	                      place is refused
 *	it was there, or      it is opened as `resolve` says; whatever it is,
 *	another came first    it was not this call that put it there
 */
#include <weft/fs.h>

#include <errno.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

#include "io/file.h"
#include "io/os/fd_kind.h"
#include "io/pooled.h"
#include "io/request/call.h"

enum { PART_BYTES = NAME_MAX + 1 };

/* ---- Making all ---------------------------------------------------------- */

static const uint64_t RESOLVES = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
				 RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

struct chain {
	int dir_fd;
	const char *path;
	mode_t mode;
	uint64_t resolve;
};

/* openat2(2) is newer than openat(2), and some sandboxes refuse it. */
static int part_open(int dir_fd, const char *part, uint64_t resolve,
		     uint64_t flags)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC | flags,
		.resolve = resolve,
	};
	long words[] = { dir_fd, weft__word(part), (long)how.flags, 0, 0, 0 };

	return resolve ? weft__syscall_openat2(dir_fd, part, &how) :
			 (int)weft__syscall_any(SYS_openat, words);
}

static int part_make(int dir_fd, const char *part, mode_t mode)
{
	long words[] = { dir_fd, weft__word(part), mode, 0, 0, 0 };

	return (int)weft__syscall_any(SYS_mkdirat, words);
}

/* Makes one part, or finds it there, and opens it. */
static int part_enter(const struct chain *chain, int dir_fd, const char *part)
{
	int made = part_make(dir_fd, part, chain->mode);
	int fd = part_open(dir_fd, part, chain->resolve,
			   made == 0 ? O_NOFOLLOW : 0);

	/* A file system may say what else is wrong, and not that the directory
	 * exists. */
	return fd < 0 && made < 0 && made != -EEXIST ? made : fd;
}

/* Takes the next part of the path, without "."; false: there is none. */
static bool part_next(const char **path, char ret_part[PART_BYTES],
		      int *ret_error)
{
	size_t length;

	do {
		*path += strspn(*path, "/");
		length = strcspn(*path, "/");
		if (length == 0)
			return false;
		if (length >= PART_BYTES) {
			*ret_error = -ENAMETOOLONG;
			return false;
		}
		memcpy(ret_part, *path, length);
		ret_part[length] = 0;
		*path += length;
	} while (strcmp(ret_part, ".") == 0);
	return true;
}

static int chain_walk(const struct chain *chain)
{
	const char *path = chain->path;
	char part[PART_BYTES];
	int next, error = 0, fd = *path == '/' ?
				    part_open(chain->dir_fd, "/",
					      chain->resolve, 0) :
				    part_open(chain->dir_fd, ".",
					      chain->resolve, 0);

	while (fd >= 0 && part_next(&path, part, &error)) {
		next = part_enter(chain, fd, part);
		weft__syscall_close(fd);
		fd = next;
	}
	if (fd < 0)
		return fd;
	weft__syscall_close(fd);
	return error;
}

/* Most often only the last is missing, or none. */
static int64_t chain_run(void *arg)
{
	const struct chain *chain = arg;

	if (!*chain->path)
		return -ENOENT;
	if (!chain->resolve &&
	    part_make(chain->dir_fd, chain->path, chain->mode) == 0)
		return 0;
	return chain_walk(chain);
}

int weft_mkdir_all(int dir_fd, const char *path, mode_t mode, uint64_t resolve)
{
	struct chain chain = { dir_fd, path, mode, resolve };

	if (!path)
		return weft__call_refused(-EFAULT);
	if (resolve & ~RESOLVES)
		return weft__call_refused(-EINVAL);
	return (int)weft__pooled(chain_run, &chain);
}

/* ---- The parent ---------------------------------------------------------- */

struct parent {
	int dir_fd;
	const char *path;
	size_t bytes; /* of the path, to the last part */
	uint64_t resolve;
};

static int64_t parent_run(void *arg)
{
	const struct parent *parent = arg;
	char path[PATH_MAX];

	memcpy(path, parent->path, parent->bytes);
	path[parent->bytes] = 0;
	return part_open(parent->dir_fd, parent->bytes ? path : ".",
			 parent->resolve, 0);
}

/* The offset of the last part; or -EINVAL, -ENOENT, -ENAMETOOLONG. */
static ssize_t last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!*path)
		return -ENOENT;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	return name - path < PATH_MAX ? name - path : -ENAMETOOLONG;
}

int weft_open_parent(int dir_fd, const char *path, uint64_t resolve,
		     const char **ret_name)
{
	struct parent parent = { dir_fd, path, 0, resolve };
	ssize_t at;
	int fd;

	if (!path || !ret_name)
		return weft__call_refused(-EFAULT);
	at = last_part(path);
	if (at < 0)
		return weft__call_refused((int)at);
	parent.bytes = (size_t)at;
	fd = (int)weft__pooled(parent_run, &parent);
	if (fd < 0)
		return fd;
	*ret_name = path + at;
	return weft__file_opened(fd, WEFT__FD_UNKNOWN);
}

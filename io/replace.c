/* SPDX-License-Identifier: MIT */
/*
 * Replacing a file as a whole.
 *
 *	begin    opens the directory, and a file in it (io/temp.h)
 *	         the caller writes
 *	commit   fsync(file), link to a temporary name, rename over the old
 *	         name, fsync(directory)
 *
 * An unnamed file cannot take the place of another one directly: linkat(2)
 * never replaces.  A process that is killed between the link and the rename
 * leaves the temporary name.  Each part is one job in the pool.
 */
#include <weft/file.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weft/io.h>

#include "io/file.h"
#include "io/os/fd_kind.h"
#include "io/pooled.h"
#include "io/request/call.h"
#include "io/temp.h"
#include "runtime/base/own_fd.h"

#define CALL(number, ...) \
	weft__syscall_any(number, (const long[WEFT__WORDS]){ __VA_ARGS__ })

enum {
	PRIVATE_RIGHTS = 0600,
	NAME_BYTES = NAME_MAX + 1,
	ACL_BYTES = 2048, /* 255 entries */
	PROC_BYTES = sizeof("/proc/self/fd/-2147483648/") + NAME_BYTES,
};

static const unsigned FLAGS = WEFT_REPLACE_KEEP | WEFT_REPLACE_NO_SYNC;

struct replace {
	struct weft__temp temp;
	unsigned flags;
	mode_t mode; /* of the old file, to be set after the writes; or 0 */
	char name[NAME_BYTES];
};

_Static_assert(sizeof(struct replace) <= sizeof(struct weft_replace),
	       "private_words has room");

static struct replace *inside(struct weft_replace *replace)
{
	return (void *)replace;
}

static const struct weft_replace NONE = { .fd = -1 };

/* ---- Steps, which wait --------------------------------------------------- */

static void steps_drop(struct replace *replace)
{
	weft__temp_unname(&replace->temp);
}

static const char ACL[] = "system.posix_acl_access";

/* Where there is no /proc.  The file may have become a FIFO. */
static long acl_get_opened(const struct replace *replace,
			   char value[ACL_BYTES])
{
	int fd = (int)CALL(SYS_openat, replace->temp.dir_fd,
			   weft__word(replace->name),
			   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				   O_CLOEXEC);
	long n;

	if (fd < 0)
		return fd;
	n = CALL(SYS_fgetxattr, fd, weft__word(ACL), weft__word(value),
		 ACL_BYTES);
	weft__syscall_close(fd);
	return n;
}

/* A file that cannot be read has a list, too. */
static long acl_get(const struct replace *replace, char value[ACL_BYTES])
{
	char path[PROC_BYTES];
	long n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s",
		 replace->temp.dir_fd, replace->name);
	n = CALL(SYS_lgetxattr, weft__word(path), weft__word(ACL),
		 weft__word(value), ACL_BYTES);
	return n == -ENOENT ? acl_get_opened(replace, value) : n;
}

static bool has_none(long error)
{
	return error == -ENODATA || error == -EOPNOTSUPP;
}

/* In a mode, the rights of the group are those of the ACL's mask, if there is
 * one: without it they would be rights of the owning group.  So the new file
 * gets the ACL of the old one, or none, also where the directory gives it one.
 * False: it cannot be kept. */
__attribute__((noinline)) static bool acl_keep(const struct replace *replace)
{
	char value[ACL_BYTES];
	int fd = replace->temp.fd;
	long n = acl_get(replace, value), r;

	if (n >= 0)
		return CALL(SYS_fsetxattr, fd, weft__word(ACL),
			    weft__word(value), n) == 0;
	r = CALL(SYS_fremovexattr, fd, weft__word(ACL));
	return has_none(n) && (r == 0 || has_none(r));
}

/* A mode that means something for its owner alone is not given to another, nor
 * the rights of a group.  Writing clears set-user-ID and set-group-ID, so these
 * come later. */
static int keep(struct replace *replace, const struct stat *old)
{
	int fd = replace->temp.fd;
	mode_t mode = old->st_mode & 07777;

	if (CALL(SYS_fchown, fd, old->st_uid, old->st_gid) < 0) {
		mode &= 0777;
		if (CALL(SYS_fchown, fd, -1, old->st_gid) < 0)
			mode &= 0707;
	}
	if (!acl_keep(replace))
		mode &= 07707;
	replace->mode = mode & 07000 ? mode : 0;
	return (int)CALL(SYS_fchmod, fd, mode & 0777);
}

/* A file system that cannot sync directories, as some of FUSE's, returns
 * -EINVAL. */
static int dir_sync(int dir_fd)
{
	int r = (int)CALL(SYS_fsync, dir_fd);

	return r == -EINVAL ? 0 : r;
}

/* *ret_moved: the new file is in its place. */
static int steps_commit(struct replace *replace, bool *ret_moved)
{
	struct weft__temp *temp = &replace->temp;
	bool syncs = !(replace->flags & WEFT_REPLACE_NO_SYNC);
	int r = 0;

	if (replace->mode)
		r = (int)CALL(SYS_fchmod, temp->fd, replace->mode);
	if (r == 0 && syncs)
		r = (int)CALL(SYS_fsync, temp->fd);
	if (r == 0)
		r = weft__temp_name(temp);
	if (r == 0)
		r = (int)CALL(SYS_renameat, temp->dir_fd,
			      weft__word(temp->name), temp->dir_fd,
			      weft__word(replace->name));
	if (r < 0) {
		steps_drop(replace);
		return r;
	}
	temp->name[0] = 0;
	*ret_moved = true;
	return syncs ? dir_sync(temp->dir_fd) : 0;
}

static int steps_write(int fd, const char *data, size_t bytes)
{
	while (bytes > 0) {
		long n = CALL(SYS_write, fd, weft__word(data),
			      (long)weft__bytes(bytes));

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		data += n;
		bytes -= (size_t)n;
	}
	return 0;
}

struct beginning {
	struct replace *replace;
	int dir_fd;
	const char *path;
	size_t dir_bytes; /* of the path, to the name */
	mode_t mode;
	const void *data; /* of weft_replace_file() */
	size_t bytes;
};

/* The file that is replaced: 1, 0 (there is none to be kept) or an error. */
static int old_look(int dir_fd, const char *name, struct stat *ret_old)
{
	if (fstatat(dir_fd, name, ret_old, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISREG(ret_old->st_mode);
}

/* A file that is to have the rights of an old one is private until it has them:
 * no other user can open it before. */
__attribute__((noinline)) static int make(const struct beginning *beginning,
					  int dir_fd)
{
	struct replace *replace = beginning->replace;
	struct stat old;
	int r, keeps = 0;

	if (replace->flags & WEFT_REPLACE_KEEP)
		keeps = old_look(dir_fd, replace->name, &old);
	if (keeps < 0)
		return keeps;
	r = weft__temp_make(&replace->temp, dir_fd,
			    keeps ? PRIVATE_RIGHTS : beginning->mode);
	return r == 0 && keeps ? keep(replace, &old) : r;
}

static int steps_begin(const struct beginning *beginning)
{
	struct replace *replace = beginning->replace;
	char dir[PATH_MAX] = ".";
	int r, dir_fd;

	if (beginning->dir_bytes > 0)
		memcpy(dir, beginning->path, beginning->dir_bytes);
	dir_fd = (int)CALL(SYS_openat, beginning->dir_fd, weft__word(dir),
			   O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir_fd = weft__fd_or_error_above_stdio(dir_fd);
	if (dir_fd < 0)
		return dir_fd;
	replace->temp = (struct weft__temp){ .fd = -1 };
	r = make(beginning, dir_fd);
	if (r == 0)
		return 0;
	steps_drop(replace);
	weft__syscall_close(dir_fd);
	if (replace->temp.fd >= 0)
		weft__syscall_close(replace->temp.fd);
	replace->temp.fd = -1;
	return r;
}

/* ---- Arguments ----------------------------------------------------------- */

static int name_take(const char *path, struct beginning *beginning)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t length = strlen(name);

	if (!*path)
		return -ENOENT;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	if (length >= NAME_BYTES || name - path >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(beginning->replace->name, name, length + 1);
	beginning->dir_bytes = (size_t)(name - path);
	return 0;
}

static int begin_take(struct beginning *beginning,
		      const struct weft_replace_opts *opts)
{
	static const struct weft_replace_opts defaults =
		WEFT_REPLACE_OPTS_INIT;

	if (!beginning->path)
		return -EFAULT;
	if (!opts)
		opts = &defaults;
	if (opts->size != sizeof(*opts) ||
	    (opts->flags & ~FLAGS) ||
	    (opts->mode & ~(mode_t)07777))
		return -EINVAL;
	beginning->mode = opts->mode;
	beginning->replace->flags = opts->flags;
	return name_take(beginning->path, beginning);
}

/* ---- Calls --------------------------------------------------------------- */

static int64_t begin_run(void *arg)
{
	return steps_begin(arg);
}

int weft_replace_begin(struct weft_replace *ret_replace, int dir_fd,
		       const char *path, const struct weft_replace_opts *opts)
{
	struct beginning beginning = {
		.replace = inside(ret_replace),
		.dir_fd = dir_fd,
		.path = path,
	};
	int r;

	*ret_replace = NONE;
	r = begin_take(&beginning, opts);
	if (r < 0)
		return weft__call_refused(r);
	r = (int)weft__pooled(begin_run, &beginning);
	if (r == 0)
		(void)weft__file_opened(ret_replace->fd, WEFT__FD_UNKNOWN);
	return r;
}

struct committing {
	struct replace *replace;
	bool moved;
};

static int64_t commit_run(void *arg)
{
	struct committing *committing = arg;

	return steps_commit(committing->replace, &committing->moved);
}

static int64_t drop_run(void *arg)
{
	steps_drop(arg);
	return 0;
}

int weft_replace_abort(struct weft_replace *aborted)
{
	struct replace *replace = inside(aborted);

	if (!weft__running(weft__worker_self()))
		return -EPERM;
	if (replace->temp.fd < 0)
		return 0;
	if (replace->temp.name[0])
		(void)weft__pooled_shielded(drop_run, replace);
	weft__syscall_close(replace->temp.dir_fd);
	(void)weft_close(replace->temp.fd);
	*aborted = NONE;
	return 0;
}

int weft_replace_commit(struct weft_replace *replace)
{
	struct committing committing = { inside(replace), false };
	int r;

	if (replace->fd < 0)
		return weft__call_refused(-EINVAL);
	r = (int)weft__pooled_on(replace->fd, commit_run, &committing);
	if (committing.moved)
		(void)weft_replace_abort(replace);
	return r;
}

static int64_t whole_run(void *arg)
{
	const struct beginning *beginning = arg;
	struct replace *replace = beginning->replace;
	bool moved = false;
	int r = steps_begin(beginning);

	if (r < 0)
		return r;
	r = steps_write(replace->temp.fd, beginning->data, beginning->bytes);
	if (r == 0)
		r = steps_commit(replace, &moved);
	steps_drop(replace);
	weft__syscall_close(replace->temp.dir_fd);
	weft__syscall_close(replace->temp.fd);
	return r;
}

int weft_replace_file(int dir_fd, const char *path, const void *data,
		      size_t bytes, const struct weft_replace_opts *opts)
{
	struct replace replace = { .temp = { .fd = -1 } };
	struct beginning beginning = {
		.replace = &replace,
		.dir_fd = dir_fd,
		.path = path,
		.data = data,
		.bytes = bytes,
	};
	int r = begin_take(&beginning, opts);

	if (r == 0 && !data && bytes)
		r = -EFAULT;
	return r < 0 ? weft__call_refused(r) :
		       (int)weft__pooled(whole_run, &beginning);
}

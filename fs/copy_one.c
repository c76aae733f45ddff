/* SPDX-License-Identifier: MIT */
/*
 * Copy one - see the header.
 *
 * A file of d_type DT_REG is opened without a look at it.  O_NONBLOCK and
 * O_NOFOLLOW are for what may have taken its place by then: the look comes
 * after.
 */
#include "fs/copy_one.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weft/copy.h>

#include "fs/copy_meta.h"
#include "runtime/base/own_fd.h"

enum {
	PRIVATE_RIGHTS = 0600,
	PLAIN_RIGHTS = 0777,
};

/* ---- Names --------------------------------------------------------------- */

void weft__copy_temp_name(char temp[WEFT__COPY_TEMP_BYTES], uint64_t *number)
{
	snprintf(temp, WEFT__COPY_TEMP_BYTES, ".weft-copy-%016llx",
		 (unsigned long long)(*number)++);
}

uint64_t weft__copy_temp_number(void)
{
	uint64_t number;
	struct timespec now;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) ==
	    (ssize_t)sizeof(number))
		return number;
	/* A name that is taken costs a try, no more. */
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec;
}

/* Where the file system has no RENAME_NOREPLACE. */
static int publish_by_link(int dir, const char *temp, const char *name)
{
	if (linkat(dir, temp, dir, name, 0) < 0)
		return -errno;
	return unlinkat(dir, temp, 0) < 0 ? -errno : 0;
}

int weft__copy_publish(int dir, const char *temp, const char *name,
		       uint32_t flags)
{
	int r;

	if (flags & WEFT_COPY_OVERWRITE)
		return renameat(dir, temp, dir, name) < 0 ? -errno : 0;
	if (syscall(SYS_renameat2, dir, temp, dir, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	r = publish_by_link(dir, temp, name);
	/* A directory: one that is there is replaced if it is empty. */
	if (r == -EPERM)
		r = renameat(dir, temp, dir, name) < 0 ? -errno : 0;
	return r;
}

static const char *name_now(const struct weft__copy_one *one)
{
	return one->direct ? one->to_name : one->temp;
}

/* ---- Opening ------------------------------------------------------------- */

/* Does an open of it do nothing but open it? */
static bool is_readable(mode_t mode)
{
	return S_ISREG(mode);
}

static int file_open(struct weft__copy_one *one, int flags)
{
	int r;

	flags |= O_RDONLY | O_CLOEXEC | O_NOCTTY;
	r = weft__fd_above_stdio(openat(one->from_dir, one->from_name,
					flags | O_NONBLOCK));
	/* The file has a lease: waits for the holder. */
	if (r == -EAGAIN)
		r = weft__fd_above_stdio(
			openat(one->from_dir, one->from_name, flags));
	if (r < 0)
		return r;
	one->from = r;
	return fstat(one->from, &one->status) < 0 ? -errno : 0;
}

static int one_look(struct weft__copy_one *one, int flags)
{
	return fstatat(one->from_dir, one->from_name, &one->status, flags) < 0 ?
		       -errno :
		       0;
}

static void from_close(struct weft__copy_one *one)
{
	if (one->from >= 0)
		close(one->from);
	one->from = -1;
}

int weft__copy_one_open(struct weft__copy_one *one, int type)
{
	bool follows = one->flags & WEFT_COPY_FOLLOW;
	int r = 0;

	one->from = -1;
	one->to = -1;
	one->made = false;
	if (type != DT_REG) {
		r = one_look(one, follows ? 0 : AT_SYMLINK_NOFOLLOW);
		if (r < 0 || !is_readable(one->status.st_mode))
			return r < 0			    ? r :
			       S_ISDIR(one->status.st_mode) ? -EISDIR :
							      0;
	}
	r = file_open(one, follows ? 0 : O_NOFOLLOW);
	if (r == 0 && S_ISREG(one->status.st_mode))
		return 0;
	from_close(one);
	/* It has become another kind of file meanwhile. */
	if (r == 0 || r == -ELOOP || r == -ENXIO)
		r = one_look(one, AT_SYMLINK_NOFOLLOW);
	return r < 0				? r :
	       S_ISDIR(one->status.st_mode)	? -EISDIR :
	       is_readable(one->status.st_mode) ? -ESTALE :
						  0;
}

/* ---- Making -------------------------------------------------------------- */

static int link_make(const struct weft__copy_one *one)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(one->from_dir, one->from_name, target,
			       sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlinkat(target, one->to_dir, name_now(one)) < 0 ? -errno : 0;
}

static int node_make(const struct weft__copy_one *one)
{
	mode_t mode = one->status.st_mode;

	return mknodat(one->to_dir, name_now(one),
		       (mode & S_IFMT) | (mode & PLAIN_RIGHTS),
		       one->status.st_rdev) < 0 ?
		       -errno :
		       0;
}

static mode_t rights_at_first(const struct weft__copy_one *one)
{
	uint32_t set_later = WEFT_COPY_MODE | WEFT_COPY_XATTRS;

	return one->flags & set_later ? PRIVATE_RIGHTS :
					one->status.st_mode & PLAIN_RIGHTS;
}

/* In a program that was started without 1 and 2, another task that writes there
 * must not write to the copy. */
static int file_make(struct weft__copy_one *one)
{
	int fd = openat(one->to_dir, name_now(one),
			O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW |
				O_NOCTTY,
			rights_at_first(one));
	int r = weft__fd_above_stdio(fd);

	if (r < 0 && fd >= 0)
		(void)unlinkat(one->to_dir, name_now(one), 0);
	one->to = r < 0 ? -1 : r;
	if (r < 0)
		return r;
	/* A directory that the tree's copy made gives none. */
	if (!one->direct && (one->flags & WEFT_COPY_XATTRS))
		weft__copy_acls_drop(one->to, false);
	return 0;
}

static int name_make(struct weft__copy_one *one)
{
	if (S_ISREG(one->status.st_mode))
		return file_make(one);
	if (S_ISLNK(one->status.st_mode))
		return link_make(one);
	return node_make(one);
}

/* Makes it under a temporary name, or directly. */
static int made_by(struct weft__copy_one *one,
		   int (*make)(struct weft__copy_one *))
{
	int r = -EEXIST;

	if (one->direct)
		r = make(one);
	for (int i = 0; !one->direct && r == -EEXIST && i < WEFT__COPY_TRIES;
	     i++) {
		weft__copy_temp_name(one->temp, one->number);
		r = make(one);
	}
	one->made = r == 0;
	return r;
}

/* Is the name free, or may it be replaced?  A look before the work. */
static int name_check(const struct weft__copy_one *one)
{
	struct stat status;

	if (one->direct)
		return 0;
	if (fstatat(one->to_dir, one->to_name, &status, AT_SYMLINK_NOFOLLOW) <
	    0)
		return errno == ENOENT ? 0 : -errno;
	if (status.st_dev == one->status.st_dev &&
	    status.st_ino == one->status.st_ino)
		return -EINVAL;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	return one->flags & WEFT_COPY_OVERWRITE ? 0 : -EEXIST;
}

static int dir_sync(int dir)
{
	int r = 0, fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0)
		r = -errno;
	close(fd);
	return r;
}

static int one_publish(struct weft__copy_one *one)
{
	int r = one->direct ? 0 :
			      weft__copy_publish(one->to_dir, one->temp,
						 one->to_name, one->flags);

	if (r < 0)
		return r;
	one->made = false;
	return !one->direct && (one->flags & WEFT_COPY_FSYNC) ?
		       dir_sync(one->to_dir) :
		       0;
}

static int name_end(const struct weft__copy_one *one)
{
	struct weft__copy_name from = { one->from_dir, one->from_name };
	struct weft__copy_name to = { one->to_dir, name_now(one) };

	return weft__copy_meta_at(from, to, &one->status, one->flags,
				  one->buffer);
}

int weft__copy_one_make(struct weft__copy_one *one)
{
	mode_t mode = one->status.st_mode;
	int r = name_check(one);

	if (r == 0 && !S_ISREG(mode) && !S_ISLNK(mode) &&
	    !(one->flags & WEFT_COPY_NODES))
		r = -EOPNOTSUPP;
	if (r == 0)
		r = made_by(one, name_make);
	if (r < 0)
		return r;
	if (one->to < 0) {
		r = name_end(one);
		return r < 0 ? r : one_publish(one);
	}
	weft__copy_bytes_begin(&one->bytes, one->from, one->to, &one->status,
			       one->bytes_max, one->buffer);
	if (one->clones)
		one->clones = weft__copy_bytes_clone(&one->bytes) ||
			      one->bytes.size == UINT64_MAX;
	return 1;
}

/* ---- Steps --------------------------------------------------------------- */

static int file_end(struct weft__copy_one *one)
{
	int to = one->to;
	int r = weft__copy_meta(one->from, to, &one->status, one->flags,
				one->buffer);

	if (r == 0 && !one->direct && (one->flags & WEFT_COPY_FSYNC) &&
	    fsync(to) < 0)
		r = -errno;
	one->to = -1;
	/* Some file systems report only now what they could not write. */
	if (close(to) < 0 && r == 0 && errno != EINTR)
		r = -errno;
	return r < 0 ? r : one_publish(one);
}

int weft__copy_one_step(struct weft__copy_one *one)
{
	int r = weft__copy_bytes_step(&one->bytes);

	return r == 0 ? file_end(one) : r;
}

/* ---- Further names, and the end ------------------------------------------ */

static int further_name_make(struct weft__copy_one *one)
{
	return linkat(one->link_dir, one->link_name, one->to_dir, name_now(one),
		      0) < 0 ?
		       -errno :
		       0;
}

int weft__copy_one_link(struct weft__copy_one *one, int dir, const char *name)
{
	int r = name_check(one);

	one->link_dir = dir;
	one->link_name = name;
	if (r == 0)
		r = made_by(one, further_name_make);
	if (r == 0)
		r = one_publish(one);
	/* A rename between two names of a file does nothing. */
	if (r == 0 && !one->direct && (one->flags & WEFT_COPY_OVERWRITE))
		(void)unlinkat(one->to_dir, one->temp, 0);
	return r;
}

void weft__copy_one_drop(struct weft__copy_one *one)
{
	from_close(one);
	if (one->to >= 0)
		close(one->to);
	one->to = -1;
	if (one->made)
		(void)unlinkat(one->to_dir, name_now(one), 0);
	one->made = false;
}

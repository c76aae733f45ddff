/* SPDX-License-Identifier: MIT */
/*
 * Copy meta - see the header.
 *
 * The order is that in which none undoes or hinders another: a change of the
 * owner clears capabilities and the set-user-ID bit, an ACL changes the rights
 * of the owner and the group, and all of it changes the times.
 *
 * As cp -p does, a process that may not give its files away keeps them; a copy
 * then has no set-user-ID bit, which would be for another user.
 */
#include "fs/copy_meta.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <weft/copy.h>

#include "fs/copy_bytes.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum {
	NAMES_BYTES = 64 << 10, /* XATTR_LIST_MAX */
	VALUE_BYTES = WEFT__COPY_BUFFER_BYTES - NAMES_BYTES,
	RIGHTS = 07777,
	PLAIN_RIGHTS = 0777,
	NOT_GROUP = 07707,
	MODES = WEFT_COPY_MODE | WEFT_COPY_XATTRS,
	PATH_BYTES = sizeof("/proc/self/fd/-2147483648/") + PATH_MAX,
};

static const char ACCESS[] = "system.posix_acl_access";
static const char GIVEN[] = "system.posix_acl_default";

_Static_assert(VALUE_BYTES >= 64 << 10, "XATTR_SIZE_MAX");

/* ---- Attributes ---------------------------------------------------------- */

/* A descriptor; or -1 and the path of a link or node. */
struct object {
	int fd;
	const char *path;
	bool follows; /* a link by that path */
};

/* No call takes a directory for them before Linux 6.13.  The path is the name,
 * or in the buffer. */
static struct object object_at(struct weft__copy_name at, char path[PATH_BYTES])
{
	if (at.dir == AT_FDCWD)
		return (struct object){ .fd = -1, .path = at.name };
	snprintf(path, PATH_BYTES, "/proc/self/fd/%d/%s", at.dir, at.name);
	return (struct object){ .fd = -1, .path = path };
}

/* Not if there is no /proc.  The calls that follow report other errors. */
static bool is_reached(struct weft__copy_name at)
{
	char path[sizeof("/proc/self/fd/-2147483648")];
	struct stat status;

	if (at.dir == AT_FDCWD)
		return true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at.dir);
	return lstat(path, &status) == 0 || errno != ENOENT;
}

static ssize_t names_get(const struct object *object, char *names)
{
	if (object->fd >= 0)
		return flistxattr(object->fd, names, NAMES_BYTES);
	return object->follows ? listxattr(object->path, names, NAMES_BYTES) :
				 llistxattr(object->path, names, NAMES_BYTES);
}

static ssize_t value_get(const struct object *object, const char *name,
			 char *value)
{
	if (object->fd >= 0)
		return fgetxattr(object->fd, name, value, VALUE_BYTES);
	return object->follows ?
		       getxattr(object->path, name, value, VALUE_BYTES) :
		       lgetxattr(object->path, name, value, VALUE_BYTES);
}

/* None is set through a link. */
static int value_set(const struct object *object, const char *name,
		     const char *value, size_t bytes)
{
	return object->fd >= 0 ? fsetxattr(object->fd, name, value, bytes, 0) :
				 lsetxattr(object->path, name, value, bytes, 0);
}

/* Those that only some processes may set, or that the destination's kind of
 * security has no use for. */
static bool is_of_system(const char *name)
{
	return strncmp(name, "security.", 9) == 0 ||
	       strncmp(name, "trusted.", 8) == 0;
}

static int xattr_copy(const struct object *from, const struct object *to,
		      const char *name, char *value)
{
	ssize_t n = value_get(from, name, value);

	if (n < 0)
		return errno == ENODATA || is_of_system(name) ? 0 : -errno;
	if (value_set(to, name, value, (size_t)n) < 0)
		return is_of_system(name) &&
				       (errno == EPERM || errno == EOPNOTSUPP) ?
			       0 :
			       -errno;
	return 0;
}

static bool is_acl(const char *name)
{
	return strncmp(name, "system.posix_acl_", 17) == 0;
}

/* An ACL may take the owner's right to write, which the others need. */
static int xattrs_copy(const struct object *from, const struct object *to,
		       char *buffer)
{
	ssize_t n = names_get(from, buffer);
	int r = 0;

	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (int acls = 0; acls < 2; acls++)
		for (const char *name = buffer; r == 0 && name < buffer + n;
		     name += strlen(name) + 1)
			if (is_acl(name) == acls)
				r = xattr_copy(from, to, name,
					       buffer + NAMES_BYTES);
	return r;
}

/* The umask may have taken that right. */
static int xattrs_copy_fd(int from, int to, mode_t mode, char *buffer)
{
	const struct object source = { .fd = from }, copy = { .fd = to };
	int r = xattrs_copy(&source, &copy, buffer);

	if (r == -EACCES && fchmod(to, S_ISDIR(mode) ? 0700 : 0600) == 0)
		r = xattrs_copy(&source, &copy, buffer);
	return r;
}

/* A list that the directory gives to all that is made in it is not that of the
 * original.  Where there is none, there is nothing to be taken away. */
void weft__copy_acls_drop(int to, bool is_directory)
{
	(void)fremovexattr(to, ACCESS);
	if (is_directory)
		(void)fremovexattr(to, GIVEN);
}

static bool has_acl(int fd, const char *name)
{
	return fgetxattr(fd, name, NULL, 0) >= 0;
}

/* Of a directory that was there before. */
static void acls_drop_others(int from, int to)
{
	struct stat status;

	if (!has_acl(from, ACCESS) && has_acl(to, ACCESS)) {
		/* The mask would be the rights of the group for a while. */
		if (fstat(to, &status) == 0)
			(void)fchmod(to, status.st_mode & NOT_GROUP);
		(void)fremovexattr(to, ACCESS);
	}
	if (!has_acl(from, GIVEN))
		(void)fremovexattr(to, GIVEN);
}

/* ---- Owner, rights, times ------------------------------------------------ */

/* Of the descriptor, or of the name below it. */
static int owner_set(int fd, const char *name, uid_t user, gid_t group)
{
	int flags = *name ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH;

	return fchownat(fd, name, user, group, flags) < 0 ? -errno : 0;
}

/* 0: as asked for; 1: not permitted; or an error. */
static int owner_copy(int fd, const char *name, const struct stat *status)
{
	int r = owner_set(fd, name, status->st_uid, status->st_gid);

	if (r != -EPERM && r != -EINVAL)
		return r;
	r = owner_set(fd, name, (uid_t)-1, status->st_gid);
	return r == 0 || r == -EPERM || r == -EINVAL ? 1 : r;
}

static mode_t rights_of(const struct stat *status, bool owner_differs)
{
	return status->st_mode & (owner_differs ? PLAIN_RIGHTS : RIGHTS);
}

/* Of what has that name, which is not followed.  The C library's call may need
 * /proc for that, and fails without it, musl's with ENOENT; the kernel's is of
 * Linux 6.6. */
int weft__copy_rights_set(struct weft__copy_name at, mode_t rights)
{
	const int flags = AT_SYMLINK_NOFOLLOW;
	int error;

	if (fchmodat(at.dir, at.name, rights, flags) == 0)
		return 0;
	error = errno;
	if (error != EOPNOTSUPP && error != ENOENT)
		return -error;
	if (syscall(SYS_fchmodat2, at.dir, at.name, rights, flags) == 0)
		return 0;
	return errno == ENOSYS ? -error : -errno;
}

static bool has_none(int error)
{
	return error == ENODATA || error == EOPNOTSUPP || error == ENOSYS;
}

/* The list that belongs to a mode, without the other attributes: in it the
 * rights of the group are the mask of the list.  Returns which rights the copy
 * may have: without the list not those of the group, which may be more. */
static mode_t access_copy(const struct object *from, const struct object *to,
			  char *value)
{
	ssize_t n = value_get(from, ACCESS, value);

	if (n >= 0)
		return value_set(to, ACCESS, value, (size_t)n) == 0 ? RIGHTS :
								      NOT_GROUP;
	if (!has_none(errno))
		return NOT_GROUP;
	if (to->fd >= 0)
		(void)fremovexattr(to->fd, ACCESS);
	else
		(void)lremovexattr(to->path, ACCESS);
	return RIGHTS;
}

int weft__copy_meta(int from, int to, const struct stat *status, uint32_t flags,
		    char *buffer)
{
	const struct timespec times[] = { status->st_atim, status->st_mtim };
	const struct object source = { .fd = from }, copy = { .fd = to };
	mode_t may_have = RIGHTS;
	int r = 0, differs = 0;

	if (flags & WEFT_COPY_OWNER)
		differs = owner_copy(to, "", status);
	if (differs < 0)
		return differs;
	if ((flags & WEFT_COPY_XATTRS) && S_ISDIR(status->st_mode))
		acls_drop_others(from, to);
	if (flags & WEFT_COPY_XATTRS)
		r = xattrs_copy_fd(from, to, status->st_mode, buffer);
	if (r < 0)
		return r;
	if ((flags & MODES) == WEFT_COPY_MODE)
		may_have = access_copy(&source, &copy, buffer);
	if ((flags & MODES) &&
	    fchmod(to, rights_of(status, differs) & may_have) < 0)
		return -errno;
	if ((flags & WEFT_COPY_TIMES) && futimens(to, times) < 0)
		return -errno;
	return 0;
}

/* As access_copy(). */
static mode_t access_copy_at(struct weft__copy_name from,
			     struct weft__copy_name to, bool follows,
			     char *value)
{
	char from_path[PATH_BYTES], to_path[PATH_BYTES];
	struct object source = object_at(from, from_path);
	const struct object copy = object_at(to, to_path);

	if (!is_reached(from) || !is_reached(to))
		return RIGHTS;
	source.follows = follows;
	return access_copy(&source, &copy, value);
}

static int xattrs_copy_at(struct weft__copy_name from,
			  struct weft__copy_name to, bool follows, char *buffer)
{
	char from_path[PATH_BYTES], to_path[PATH_BYTES];
	struct object source = object_at(from, from_path);
	const struct object copy = object_at(to, to_path);

	if (!is_reached(from) || !is_reached(to))
		return 0;
	source.follows = follows;
	/* As weft__copy_acls_drop(); a link has none. */
	(void)lremovexattr(copy.path, ACCESS);
	return xattrs_copy(&source, &copy, buffer);
}

int weft__copy_meta_at(struct weft__copy_name from, struct weft__copy_name to,
		       const struct stat *status, uint32_t flags, char *buffer)
{
	const struct timespec times[] = { status->st_atim, status->st_mtim };
	bool is_link = S_ISLNK(status->st_mode);
	bool follows = (flags & WEFT_COPY_FOLLOW) && !is_link;
	mode_t may_have = RIGHTS;
	int r = 0, differs = 0;

	if (flags & WEFT_COPY_OWNER)
		differs = owner_copy(to.dir, to.name, status);
	if (differs < 0)
		return differs;
	if (flags & WEFT_COPY_XATTRS)
		r = xattrs_copy_at(from, to, follows, buffer);
	if (r < 0)
		return r;
	/* A link has no rights of its own.  One that has been put in the
	 * node's place meanwhile is not followed. */
	if ((flags & MODES) == WEFT_COPY_MODE && !is_link)
		may_have = access_copy_at(from, to, follows, buffer);
	if ((flags & MODES) && !is_link)
		r = weft__copy_rights_set(to, rights_of(status, differs) &
						      may_have);
	if (r < 0)
		return r;
	if ((flags & WEFT_COPY_TIMES) &&
	    utimensat(to.dir, to.name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

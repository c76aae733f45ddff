/* SPDX-License-Identifier: MIT */
/*
 * Names of files: the POSIX and Linux calls that make, move, remove and examine
 * them, without blocking a thread.
 *
 * Each call has the arguments of the call of its name without weft_, and
 * returns the same result, but a negative errno in place of -1 and errno; also
 * -EPERM outside a task or in a future, -EFAULT for a NULL pointer, and
 * -ENOMEM.  Those with `at` in their names, or with a dir_fd, take names below
 * an open directory, or AT_FDCWD.
 *
 * Each call suspends: io_uring carries it out, or a thread of the pool of
 * weft_blocking(), in a lane of 64.  Until it has begun there, cancellation and
 * WEFT_WITHIN end it (-ECANCELED, -ETIMEDOUT), and nothing was done; a call
 * that has begun is waited for, and its result is the caller's.  A dir_fd stays
 * open until the call has returned.
 *
 * For names that come from elsewhere, open the directory with
 * weft_open_parent() first, and give its descriptor and the last part to the
 * call, with AT_SYMLINK_NOFOLLOW where the call has flags that know it.
 */
#ifndef WEFT_FS_H
#define WEFT_FS_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* ---- Making and removing ------------------------------------------------- */

/* As unlink(2), rmdir(2) and unlinkat(2); flags: AT_REMOVEDIR.  A file that is
 * still open stays until its last descriptor is closed.  Return 0 or an error,
 * such as -ENOENT, -EISDIR, -ENOTDIR, -ENOTEMPTY. */
WEFT_API int weft_unlink(const char *path) WEFT_WARN_UNUSED;
WEFT_API int weft_rmdir(const char *path) WEFT_WARN_UNUSED;
WEFT_API int weft_unlinkat(int dir_fd, const char *path,
			   int flags) WEFT_WARN_UNUSED;

/* As rename(2), renameat2(2) and linkat(2).  flags of the second: RENAME_ of
 * <linux/fs.h> or <stdio.h>; of the third: AT_SYMLINK_FOLLOW, AT_EMPTY_PATH.
 * Return 0 or an error, such as -ENOENT, -EEXIST, -EXDEV. */
WEFT_API int weft_rename(const char *from, const char *to) WEFT_WARN_UNUSED;
WEFT_API int weft_renameat2(int from_dir_fd, const char *from, int to_dir_fd,
			    const char *to, unsigned flags) WEFT_WARN_UNUSED;
WEFT_API int weft_linkat(int from_dir_fd, const char *from, int to_dir_fd,
			 const char *to, int flags) WEFT_WARN_UNUSED;

/* As symlinkat(2) and readlinkat(2).  The second returns how many bytes it has
 * put into buf, which it does not end with a 0; as many as there is room for
 * may be a part.  -EINVAL: no symbolic link, or no room. */
WEFT_API int weft_symlinkat(const char *target, int dir_fd,
			    const char *path) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_readlinkat(int dir_fd, const char *path, char *buf,
				 size_t bytes) WEFT_WARN_UNUSED;

/* As mkdir(2) and mkdirat(2).  Return 0 or an error, such as -EEXIST. */
WEFT_API int weft_mkdir(const char *path, mode_t mode) WEFT_WARN_UNUSED;
WEFT_API int weft_mkdirat(int dir_fd, const char *path,
			  mode_t mode) WEFT_WARN_UNUSED;

/*
 * Makes the directory and those above it that are missing, all with this mode,
 * less the umask.  Returns 0 also if the directory exists, or another maker
 * comes first; -ENOTDIR if a part of the path is another file; or an error of
 * mkdirat(2) or openat2(2).  An error leaves the directories that were made.
 *
 * It goes from directory to directory by descriptors.  Symbolic links that
 * exist are followed; one that takes the place of a directory that this call
 * has made is not.  resolve: RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS,
 * RESOLVE_NO_MAGICLINKS and RESOLVE_NO_XDEV of <linux/openat2.h> (-EINVAL:
 * others), for each part alone: with the first, "..", a path that begins with
 * "/" and a link that leaves its own directory give -EXDEV.
 */
WEFT_API int weft_mkdir_all(int dir_fd, const char *path, mode_t mode,
			    uint64_t resolve) WEFT_WARN_UNUSED;

/*
 * Opens the directory in which a path's last part is, for the calls with a
 * dir_fd: with RESOLVE_BENEATH no name leads out of dir_fd.
 *
 *	fd = weft_open_parent(root, path, RESOLVE_BENEATH, &name);
 *	r = fd < 0 ? fd : weft_unlinkat(fd, name, 0);
 *
 * resolve: as of openat2(2).  The descriptor is opened with O_PATH, is good for
 * nothing but those calls and weft_openat() (with O_NOFOLLOW), and is the
 * caller's.  *ret_name is the last part, in path.  Returns the descriptor,
 * -EINVAL (the path ends with "/", "." or ".."), -ENOENT (it is empty, or a
 * directory is missing), -EXDEV, or another error of openat2(2).
 */
WEFT_API int weft_open_parent(int dir_fd, const char *path, uint64_t resolve,
			      const char **ret_name) WEFT_WARN_UNUSED;

/* ---- Status -------------------------------------------------------------- */

/* As statx(2).  For a local file system, and if all names are in the kernel's
 * cache, it does not suspend.  Include <sys/stat.h> with _GNU_SOURCE. */
struct statx;
WEFT_API int weft_statx(int dir_fd, const char *path, int flags, unsigned mask,
			struct statx *ret_status) WEFT_WARN_UNUSED;

/* As faccessat(2). */
WEFT_API int weft_faccessat(int dir_fd, const char *path, int mode,
			    int flags) WEFT_WARN_UNUSED;

/* As realpath(3): the path without links, "." and "..", ended with a 0.
 * Returns its length, -ERANGE (no room in bytes), or an error. */
WEFT_API ssize_t weft_realpath(const char *path, char *ret_path,
			       size_t bytes) WEFT_WARN_UNUSED;

/* As fchmodat(2), fchownat(2), utimensat(2) and truncate(2).  times: two, the
 * access's and the modification's; NULL: now. */
WEFT_API int weft_fchmodat(int dir_fd, const char *path, mode_t mode,
			   int flags) WEFT_WARN_UNUSED;
WEFT_API int weft_fchownat(int dir_fd, const char *path, uid_t uid, gid_t gid,
			   int flags) WEFT_WARN_UNUSED;
struct timespec;
WEFT_API int weft_utimensat(int dir_fd, const char *path,
			    const struct timespec *times,
			    int flags) WEFT_WARN_UNUSED;
WEFT_API int weft_truncate(const char *path, off_t bytes) WEFT_WARN_UNUSED;

/* ---- Extended attributes ------------------------------------------------- */

/* As getxattr(2), listxattr(2), setxattr(2) and removexattr(2): of a path,
 * whose links are followed; with an l, of the link itself that the path ends
 * in; and with an f, of a descriptor.  The first six return the size of the
 * value or list, with no room (0 bytes) also without it; the others 0.  Errors
 * are those of the calls, such as -ENODATA (no such attribute), -ERANGE (no
 * room), -EOPNOTSUPP, -EPERM (a link takes no user. attribute).  For a name
 * below a dir_fd, the path is "/proc/self/fd/DIR_FD/NAME". */
WEFT_API ssize_t weft_getxattr(const char *path, const char *name, void *value,
			       size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_lgetxattr(const char *path, const char *name, void *value,
				size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_fgetxattr(int fd, const char *name, void *value,
				size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_listxattr(const char *path, char *list,
				size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_llistxattr(const char *path, char *list,
				 size_t bytes) WEFT_WARN_UNUSED;
WEFT_API ssize_t weft_flistxattr(int fd, char *list,
				 size_t bytes) WEFT_WARN_UNUSED;
WEFT_API int weft_setxattr(const char *path, const char *name,
			   const void *value, size_t bytes,
			   int flags) WEFT_WARN_UNUSED;
WEFT_API int weft_lsetxattr(const char *path, const char *name,
			    const void *value, size_t bytes,
			    int flags) WEFT_WARN_UNUSED;
WEFT_API int weft_fsetxattr(int fd, const char *name, const void *value,
			    size_t bytes, int flags) WEFT_WARN_UNUSED;
WEFT_API int weft_removexattr(const char *path,
			      const char *name) WEFT_WARN_UNUSED;
WEFT_API int weft_lremovexattr(const char *path,
			       const char *name) WEFT_WARN_UNUSED;
WEFT_API int weft_fremovexattr(int fd, const char *name) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif

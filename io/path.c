/* SPDX-License-Identifier: MIT */
/*
 * Calls on names: by the ring, where it has the operation, for that costs less
 * than a thread of the pool when there are several (bench/NOTES.md); else each
 * is a job of its own in the pool (io/pooled.h).  weft_statx() is in io/file.c,
 * with what else looks into the kernel's caches first.
 */
#include <weft/fs.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/pooled.h"
#include "io/request/call.h"

/* ---- Making and removing ------------------------------------------------- */

static int name_run(const struct weft__request *request)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	return r < 0 ? r : weft__op_run(request, NULL, WEFT__OP_AT_ONCE);
}

int weft_unlinkat(int dir_fd, const char *path, int flags)
{
	return name_run(&(struct weft__request){
		.opcode = WEFT__OPCODE_UNLINKAT,
		.fd = dir_fd,
		.memory = path,
		.how = (uint32_t)flags,
	});
}

int weft_unlink(const char *path)
{
	return weft_unlinkat(AT_FDCWD, path, 0);
}

int weft_rmdir(const char *path)
{
	return weft_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int weft_renameat2(int from_dir_fd, const char *from, int to_dir_fd,
		   const char *to, unsigned flags)
{
	return name_run(&(struct weft__request){
		.opcode = WEFT__OPCODE_RENAMEAT,
		.fd = from_dir_fd,
		.memory = from,
		.to_fd = to_dir_fd,
		.to = to,
		.how = flags,
	});
}

int weft_rename(const char *from, const char *to)
{
	return weft_renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int weft_linkat(int from_dir_fd, const char *from, int to_dir_fd,
		const char *to, int flags)
{
	return name_run(&(struct weft__request){
		.opcode = WEFT__OPCODE_LINKAT,
		.fd = from_dir_fd,
		.memory = from,
		.to_fd = to_dir_fd,
		.to = to,
		.how = (uint32_t)flags,
	});
}

int weft_symlinkat(const char *target, int dir_fd, const char *path)
{
	return name_run(&(struct weft__request){
		.opcode = WEFT__OPCODE_SYMLINKAT,
		.fd = dir_fd,
		.memory = target,
		.to = path,
	});
}

/* The kernel takes an int. */
ssize_t weft_readlinkat(int dir_fd, const char *path, char *buf, size_t bytes)
{
	return (ssize_t)WEFT__CALL(SYS_readlinkat, dir_fd, weft__word(path),
				   weft__word(buf), weft__bytes(bytes));
}

int weft_mkdirat(int dir_fd, const char *path, mode_t mode)
{
	return name_run(&(struct weft__request){
		.opcode = WEFT__OPCODE_MKDIRAT,
		.fd = dir_fd,
		.memory = path,
		.mode = mode,
	});
}

int weft_mkdir(const char *path, mode_t mode)
{
	return weft_mkdirat(AT_FDCWD, path, mode);
}

/* ---- Status -------------------------------------------------------------- */

/* For the calls whose flags the C library may have to carry out. */
struct at_call {
	int dir_fd;
	const char *path;
	int mode, flags;
};

__attribute__((noinline)) static int64_t access_run(void *arg)
{
	const struct at_call *call = arg;

	return faccessat(call->dir_fd, call->path, call->mode, call->flags) ?
		       -errno :
		       0;
}

__attribute__((noinline)) static int64_t chmod_run(void *arg)
{
	const struct at_call *call = arg;

	return fchmodat(call->dir_fd, call->path, (mode_t)call->mode,
			call->flags) ?
		       -errno :
		       0;
}

int weft_faccessat(int dir_fd, const char *path, int mode, int flags)
{
	struct at_call call = { dir_fd, path, mode, flags };

	return path ? (int)weft__pooled(access_run, &call) :
		      weft__call_refused(-EFAULT);
}

int weft_fchmodat(int dir_fd, const char *path, mode_t mode, int flags)
{
	struct at_call call = { dir_fd, path, (int)mode, flags };

	return path ? (int)weft__pooled(chmod_run, &call) :
		      weft__call_refused(-EFAULT);
}

int weft_fchownat(int dir_fd, const char *path, uid_t uid, gid_t gid, int flags)
{
	return (int)WEFT__CALL(SYS_fchownat, dir_fd, weft__word(path), uid, gid,
			       flags);
}

/* To the kernel no path means the descriptor itself. */
int weft_utimensat(int dir_fd, const char *path, const struct timespec *times,
		   int flags)
{
	if (!path)
		return weft__call_refused(-EFAULT);
	return (int)WEFT__CALL(SYS_utimensat, dir_fd, weft__word(path),
			       weft__word(times), flags);
}

int weft_truncate(const char *path, off_t bytes)
{
	return (int)WEFT__CALL(SYS_truncate, weft__word(path), bytes);
}

struct real_path {
	const char *path;
	char *ret_path;
	size_t bytes;
};

__attribute__((noinline)) static int64_t real_path_run(void *arg)
{
	const struct real_path *call = arg;
	char real[PATH_MAX];
	size_t length;

	if (!realpath(call->path, real))
		return -errno;
	length = strlen(real);
	if (length >= call->bytes)
		return -ERANGE;
	memcpy(call->ret_path, real, length + 1);
	return (int64_t)length;
}

ssize_t weft_realpath(const char *path, char *ret_path, size_t bytes)
{
	struct real_path call = { path, ret_path, bytes };

	if (!path || !ret_path)
		return weft__call_refused(-EFAULT);
	return (ssize_t)weft__pooled(real_path_run, &call);
}

/* ---- Extended attributes ------------------------------------------------- */

ssize_t weft_getxattr(const char *path, const char *name, void *value,
		      size_t bytes)
{
	return (ssize_t)WEFT__CALL(SYS_getxattr, weft__word(path),
				   weft__word(name), weft__word(value),
				   (long)bytes);
}

ssize_t weft_lgetxattr(const char *path, const char *name, void *value,
		       size_t bytes)
{
	return (ssize_t)WEFT__CALL(SYS_lgetxattr, weft__word(path),
				   weft__word(name), weft__word(value),
				   (long)bytes);
}

ssize_t weft_fgetxattr(int fd, const char *name, void *value, size_t bytes)
{
	return (ssize_t)WEFT__CALL_ON(fd, SYS_fgetxattr, weft__word(name),
				      weft__word(value), (long)bytes);
}

ssize_t weft_listxattr(const char *path, char *list, size_t bytes)
{
	return (ssize_t)WEFT__CALL(SYS_listxattr, weft__word(path),
				   weft__word(list), (long)bytes);
}

ssize_t weft_llistxattr(const char *path, char *list, size_t bytes)
{
	return (ssize_t)WEFT__CALL(SYS_llistxattr, weft__word(path),
				   weft__word(list), (long)bytes);
}

ssize_t weft_flistxattr(int fd, char *list, size_t bytes)
{
	return (ssize_t)WEFT__CALL_ON(fd, SYS_flistxattr, weft__word(list),
				      (long)bytes);
}

int weft_setxattr(const char *path, const char *name, const void *value,
		  size_t bytes, int flags)
{
	return (int)WEFT__CALL(SYS_setxattr, weft__word(path), weft__word(name),
			       weft__word(value), (long)bytes, flags);
}

int weft_lsetxattr(const char *path, const char *name, const void *value,
		   size_t bytes, int flags)
{
	return (int)WEFT__CALL(SYS_lsetxattr, weft__word(path),
			       weft__word(name), weft__word(value), (long)bytes,
			       flags);
}

int weft_fsetxattr(int fd, const char *name, const void *value, size_t bytes,
		   int flags)
{
	return (int)WEFT__CALL_ON(fd, SYS_fsetxattr, weft__word(name),
				  weft__word(value), (long)bytes, flags);
}

int weft_removexattr(const char *path, const char *name)
{
	return (int)WEFT__CALL(SYS_removexattr, weft__word(path),
			       weft__word(name));
}

int weft_lremovexattr(const char *path, const char *name)
{
	return (int)WEFT__CALL(SYS_lremovexattr, weft__word(path),
			       weft__word(name));
}

int weft_fremovexattr(int fd, const char *name)
{
	return (int)WEFT__CALL_ON(fd, SYS_fremovexattr, weft__word(name));
}

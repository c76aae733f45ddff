/* SPDX-License-Identifier: MIT */
/*
 * Calls on open files in the pool (io/pooled.h); a close waits for them.  A 0
 * behind the descriptor stands for no argument.
 */
#include <weft/file.h>
#include <weft/io.h>

#include <sys/syscall.h>

#include "io/pooled.h"

int weft_fsync(int fd)
{
	return (int)WEFT__CALL_ON(fd, SYS_fsync, 0);
}

int weft_fdatasync(int fd)
{
	return (int)WEFT__CALL_ON(fd, SYS_fdatasync, 0);
}

int weft_ftruncate(int fd, off_t bytes)
{
	return (int)WEFT__CALL_ON(fd, SYS_ftruncate, bytes);
}

int weft_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	return (int)WEFT__CALL_ON(fd, SYS_fallocate, mode, offset, bytes);
}

int weft_fchmod(int fd, mode_t mode)
{
	return (int)WEFT__CALL_ON(fd, SYS_fchmod, mode);
}

int weft_fchown(int fd, uid_t uid, gid_t gid)
{
	return (int)WEFT__CALL_ON(fd, SYS_fchown, uid, gid);
}

int weft_futimens(int fd, const struct timespec *times)
{
	return (int)WEFT__CALL_ON(fd, SYS_utimensat, 0, weft__word(times), 0);
}

int weft_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags)
{
	return (int)WEFT__CALL_ON(fd, SYS_sync_file_range, offset, bytes,
				  flags);
}

int weft_syncfs(int fd)
{
	return (int)WEFT__CALL_ON(fd, SYS_syncfs, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * Files: opening, looking at, writing back.
 */
#include <weft/io.h>

#include <string.h>
#include <sys/sysmacros.h>

#include "io/call.h"

/* ---- Opening ---------------------------------------------------------- */

static int32_t open_run(int dir_fd, const char *path, int flags, mode_t mode,
			bool by_thread)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_openat(&sqe, dir_fd, path, flags | O_CLOEXEC, mode);
	if (by_thread)
		sqe.flags |= IOSQE_ASYNC;
	return weft__op_run(&sqe, WEFT__OP_AT_ONCE);
}

/* The kernel first tries to open without waiting.  With a FIFO that is another
 * thing: reading without a writer succeeds, and writing without a reader fails,
 * instead of waiting for the other end. */
static bool open_must_wait(int r, int flags)
{
	if (flags & (O_NONBLOCK | O_PATH))
		return false;
	if (r == -ENXIO)
		return (flags & O_ACCMODE) == O_WRONLY;
	return r >= 0 && (flags & O_ACCMODE) == O_RDONLY &&
	       !(flags & O_DIRECTORY) && weft__direct_is_fifo(r);
}

int weft_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	int r;

	if (!path)
		return weft__call_refused(-EFAULT);
	r = open_run(dir_fd, path, flags, mode, false);
	if (open_must_wait(r, flags)) {
		if (r >= 0)
			weft__direct_close(r);
		r = open_run(dir_fd, path, flags, mode, true);
	}
	if (r < 0)
		return r;
	worker = weft__worker_self();
	entry = weft__fd_find(&weft__reactor(worker->runtime)->fds, r);
	if (entry)
		weft__fd_set_kind(entry, WEFT__FD_UNKNOWN);
	return r;
}

int weft_open(const char *path, int flags, mode_t mode)
{
	return weft_openat(AT_FDCWD, path, flags, mode);
}

/* ---- Looking at ------------------------------------------------------- */

static void stat_from(const struct statx *from, struct stat *ret_stat)
{
	*ret_stat = (struct stat){
		.st_dev = makedev(from->stx_dev_major, from->stx_dev_minor),
		.st_ino = from->stx_ino,
		.st_mode = from->stx_mode,
		.st_nlink = from->stx_nlink,
		.st_uid = from->stx_uid,
		.st_gid = from->stx_gid,
		.st_rdev = makedev(from->stx_rdev_major, from->stx_rdev_minor),
		.st_size = (off_t)from->stx_size,
		.st_blksize = (blksize_t)from->stx_blksize,
		.st_blocks = (blkcnt_t)from->stx_blocks,
		.st_atim = { from->stx_atime.tv_sec, from->stx_atime.tv_nsec },
		.st_mtim = { from->stx_mtime.tv_sec, from->stx_mtime.tv_nsec },
		.st_ctim = { from->stx_ctime.tv_sec, from->stx_ctime.tv_nsec },
	};
}

static int stat_run(int fd, const char *path, int flags, unsigned op_flags,
		    struct stat *ret_stat)
{
	struct io_uring_sqe sqe = { 0 };
	struct statx result;
	int r;

	io_uring_prep_statx(&sqe, fd, path, flags, STATX_BASIC_STATS, &result);
	r = weft__op_run(&sqe, op_flags | WEFT__OP_AT_ONCE);
	if (r < 0)
		return r;
	stat_from(&result, ret_stat);
	return 0;
}

int weft_stat(const char *path, struct stat *ret_stat)
{
	if (!path || !ret_stat)
		return weft__call_refused(-EFAULT);
	return stat_run(AT_FDCWD, path, 0, 0, ret_stat);
}

int weft_fstat(int fd, struct stat *ret_stat)
{
	if (fd < 0)
		return weft__call_refused(-EBADF);
	if (!ret_stat)
		return weft__call_refused(-EFAULT);
	return stat_run(fd, "", AT_EMPTY_PATH, WEFT__OP_ON_FD, ret_stat);
}

/* ---- Writing back ----------------------------------------------------- */

static int sync_run(int fd, unsigned flags)
{
	struct io_uring_sqe sqe = { 0 };

	io_uring_prep_fsync(&sqe, fd, flags);
	return weft__op_run(&sqe, WEFT__OP_ON_FD | WEFT__OP_AT_ONCE);
}

int weft_fsync(int fd)
{
	return sync_run(fd, 0);
}

int weft_fdatasync(int fd)
{
	return sync_run(fd, IORING_FSYNC_DATASYNC);
}

/* SPDX-License-Identifier: MIT */
/*
 * Files: opening, reading the status, writing back.  All of them go through the
 * ring, submitted immediately (WEFT__OP_AT_ONCE).  Opening first looks in the
 * cache of names for the type; weft_openat2() opens from it if that can do.
 */
#include <weft/io.h>

#include <linux/openat2.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "io/request/call.h"

/* ---- Opening ---------------------------------------------------------- */

/*
 * May opening wait for what only a thread can wait for: the other end of a
 * FIFO, a device?  The kernel first tries each open as with O_NONBLOCK.  That
 * has another result for such a file: an open that lets the other end through,
 * or fails.  So weft looks at the type before, and has such a file opened once,
 * by a thread of the kernel.
 *
 * A path that is not cached, that creates or that truncates is opened by such a
 * thread in any case, and needs no look.
 *
 * A path that becomes a FIFO after the look is opened as with O_NONBLOCK.  The
 * descriptor is kept then: its open may have let the other end through, which
 * would be alone again after a close and a second open.  An open that failed
 * has met no end, and is made again.
 */
static bool open_may_wait(int dir_fd, const char *path,
			  const struct open_how *how)
{
	int type;

	if (how->flags & (O_NONBLOCK | O_PATH | O_DIRECTORY))
		return false;
	if (how->flags & (O_CREAT | O_TRUNC))
		return true;
	type = weft__syscall_type(dir_fd, path, how);
	return type != S_IFREG && type != S_IFDIR && type != -ENOENT;
}

/* The number is new: what was known of its last file is forgotten. */
static int open_done(int fd)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__fd *entry =
		weft__fd_find(&weft__reactor(worker->runtime)->fds, fd);

	if (entry)
		weft__fd_set_kind(entry, WEFT__FD_UNKNOWN);
	return fd;
}

static int open_run(struct weft__request *request, const struct open_how *how)
{
	int r;

	if (open_may_wait(request->fd, request->memory, how))
		request->flags |= WEFT__REQUEST_BLOCKS;
	r = weft__op_run(request, NULL, WEFT__OP_AT_ONCE);
	/* The path has become a FIFO that has no reader. */
	if (r == -ENXIO && !(how->flags & (O_NONBLOCK | O_PATH)) &&
	    !(request->flags & WEFT__REQUEST_BLOCKS)) {
		request->flags |= WEFT__REQUEST_BLOCKS;
		r = weft__op_run(request, NULL, WEFT__OP_AT_ONCE);
	}
	return r < 0 ? r : open_done(r);
}

int weft_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct weft__request request = {
		.opcode = WEFT__OPCODE_OPENAT,
		.fd = dir_fd,
		.memory = path,
		.mode = mode,
		.how = (uint32_t)(flags | O_CLOEXEC),
	};
	struct open_how how = { .flags = request.how };
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r == 0 && !path)
		r = -EFAULT;
	return r < 0 ? r : open_run(&request, &how);
}

int weft_open(const char *path, int flags, mode_t mode)
{
	return weft_openat(AT_FDCWD, path, flags, mode);
}

/* As in the kernel: a page at most. */
enum { HOW_BYTES_MAX = 4096 };

/* Fields that only a newer program knows must be zero. */
static int how_take(const struct open_how *how, size_t bytes,
		    struct open_how *ret_how)
{
	const char *byte = (const char *)how;

	if (!how)
		return -EFAULT;
	if (bytes < sizeof(*how))
		return -EINVAL;
	if (bytes > HOW_BYTES_MAX)
		return -E2BIG;
	for (size_t i = sizeof(*how); i < bytes; i++)
		if (byte[i])
			return -E2BIG;
	memcpy(ret_how, how, sizeof(*how));
	ret_how->flags |= O_CLOEXEC;
	return 0;
}

/* Opens with a look-up in the cache alone; -EAGAIN if that is not enough.
 * Without O_NONBLOCK the opening itself might wait. */
static int open_cached(int dir_fd, const char *path, struct open_how how)
{
	const uint64_t changes = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

	if (!(how.flags & O_NONBLOCK) || (how.flags & changes))
		return -EAGAIN;
	how.resolve |= RESOLVE_CACHED;
	return weft__syscall_openat2(dir_fd, path, &how);
}

int weft_openat2(int dir_fd, const char *path, const struct open_how *how,
		 size_t how_bytes)
{
	struct weft__worker *worker;
	struct open_how taken;
	struct weft__request request = {
		.opcode = WEFT__OPCODE_OPENAT2,
		.fd = dir_fd,
		.memory = path,
		.bytes = sizeof(taken),
		.open_how = &taken,
	};
	int r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	r = path ? how_take(how, how_bytes, &taken) : -EFAULT;
	if (r < 0)
		return r;
	r = open_cached(dir_fd, path, taken);
	if (r >= 0)
		open_done(r);
	if (!weft__call_wants_ring(r) || (taken.resolve & RESOLVE_CACHED))
		return (int)weft__call_ready(worker, r);
	return open_run(&request, &taken);
}

/* ---- Status ----------------------------------------------------------- */

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

static int stat_run(int fd, struct weft__fd *entry, const char *path, int flags,
		    struct stat *ret_stat)
{
	struct statx result;
	struct weft__request request = {
		.opcode = WEFT__OPCODE_STATX,
		.fd = fd,
		.memory = path,
		.mask = STATX_BASIC_STATS,
		.how = (uint32_t)flags,
		.status = &result,
	};
	int r = weft__op_run(&request, entry, WEFT__OP_AT_ONCE);

	if (r < 0)
		return r;
	stat_from(&result, ret_stat);
	return 0;
}

int weft_stat(const char *path, struct stat *ret_stat)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r == 0 && (!path || !ret_stat))
		r = -EFAULT;
	return r < 0 ? r : stat_run(AT_FDCWD, NULL, path, 0, ret_stat);
}

int weft_fstat(int fd, struct stat *ret_stat)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	int r = weft__call_begin_fd(fd, &worker, &entry);

	if (r == 0 && !ret_stat)
		r = -EFAULT;
	return r < 0 ? r : stat_run(fd, entry, "", AT_EMPTY_PATH, ret_stat);
}

/* ---- Writing back ----------------------------------------------------- */

static int sync_run(int fd, unsigned flags)
{
	struct weft__request request = {
		.opcode = WEFT__OPCODE_FSYNC,
		.fd = fd,
		.how = flags,
	};
	struct weft__worker *worker;
	struct weft__fd *entry;
	int r = weft__call_begin_fd(fd, &worker, &entry);

	return r < 0 ? r : weft__op_run(&request, entry, WEFT__OP_AT_ONCE);
}

int weft_fsync(int fd)
{
	return sync_run(fd, 0);
}

int weft_fdatasync(int fd)
{
	return sync_run(fd, WEFT__FSYNC_DATA);
}

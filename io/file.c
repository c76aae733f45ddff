/* SPDX-License-Identifier: MIT */
/*
 * Files: opening, reading the status.
 *
 * Opening and the status first look at the file in the kernel's caches
 * (io/os/look.h).  If it is a local file or directory all of whose names are
 * cached, a call by this thread cannot wait, and is made.  All else goes
 * through the ring, submitted immediately (WEFT__OP_AT_ONCE).
 */
#include "io/file.h"

#include <weft/fs.h>
#include <weft/io.h>

#include <linux/openat2.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "io/os/may_wait.h"
#include "io/request/call.h"
#include "io/request/waits.h"
#include "io/stored.h"

/* ---- Opening ---------------------------------------------------------- */

/*
 * Opening may wait for what only a thread can wait for: the other end of a
 * FIFO, a device, a server.  The kernel first tries each open as with
 * O_NONBLOCK.  That has another result for a FIFO or a device: an open that
 * lets the other end through, or fails.  So weft looks at the file before.
 *
 *	local: a file, a directory, no file   opened by this thread
 *	a FIFO, a device                      once, by a thread of the pool
 *	others                                once, by a thread of the kernel
 *	what is not cached of a directory     looked up by such a thread, then
 *	  that is, if it is local             looked at again
 *
 * The kernel has few threads for files (four for each processor).  A FIFO would
 * keep one until its other end comes, which may wait for that thread.
 *
 * A path that is created or truncated is for such a thread too, unless it is a
 * FIFO or a device.
 *
 * A path that becomes a FIFO after the look is opened as with O_NONBLOCK.  The
 * descriptor is kept then: its open may have let the other end through, which
 * would be alone again after a close and a second open.  An open that failed
 * has met no end, and is made again.
 */
static const uint64_t CHANGES = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

int weft__file_opened(int fd, int kind)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__fd *entry =
		weft__fd_find(&weft__reactor(worker->runtime)->fds, fd);

	if (entry)
		weft__fd_set_kind(entry, kind);
	weft__reactor_forget(worker, fd);
	return fd;
}

/* Opens with a look-up in the cache alone; -EAGAIN if that is not enough. */
static int open_cached(int dir_fd, const char *path, struct open_how how)
{
	how.flags |= O_NONBLOCK;
	how.resolve |= RESOLVE_CACHED;
	return weft__syscall_openat2(dir_fd, path, &how);
}

/* May the open wait until another process acts?  The devices of memory, such
 * as /dev/null, do not. */
static bool waits_for_others(const struct statx *status)
{
	enum { MEMORY = 1 };

	return S_ISFIFO(status->stx_mode) ||
	       (S_ISCHR(status->stx_mode) && status->stx_rdev_major != MEMORY);
}

/* Will a file be made, whatever the path names? */
static bool makes(uint64_t flags)
{
	return (flags & O_TMPFILE) == O_TMPFILE ||
	       (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

/* Is the directory of a path cached, and local?  A server is not to be asked
 * twice, unless a link leads there. */
static bool parent_is_local(int dir_fd, const char *path)
{
	enum { BYTES_MAX = 512 };
	static const struct open_how follow;
	const char *name = strrchr(path, '/');
	size_t length = name ? (size_t)(name - path) : 0;
	char parent[BYTES_MAX];
	struct statx status;

	if (length >= BYTES_MAX)
		return false;
	memcpy(parent, path, length);
	/* The root, or where the path begins. */
	if (length == 0)
		parent[length++] = name ? '/' : '.';
	parent[length] = '\0';
	return weft__look_path(dir_fd, parent, &follow, WEFT__STORED_MASK,
			       &status) == 0 &&
	       weft__look_is_local(&status);
}

/* By whom a path is to be opened that this thread has not opened. */
enum opener { BY_RING, BY_POOL, BY_LOOKING };

/* The descriptor keeps the flags that the caller gave. */
static int open_by_look(int dir_fd, const char *path,
			const struct open_how *how, enum opener *ret_opener)
{
	struct statx status = { .stx_mask = 0 };
	int r = weft__look_path(dir_fd, path, how, WEFT__STORED_MASK, &status);
	int fd;

	if (r == 0 && waits_for_others(&status))
		*ret_opener = BY_POOL;
	else if (r == -EAGAIN && !(how->flags & CHANGES) && !how->resolve &&
		 parent_is_local(dir_fd, path))
		*ret_opener = BY_LOOKING;
	if ((r < 0 && r != -ENOENT) || how->flags & CHANGES)
		return -EAGAIN;
	if (r == 0 && !weft__look_is_local_file(&status) &&
	    !(S_ISDIR(status.stx_mode) && weft__look_is_local(&status)))
		return -EAGAIN;
	fd = open_cached(dir_fd, path, *how);
	if (fd < 0)
		return fd;
	(void)weft__syscall_set_flags(fd, (int)how->flags);
	return weft__file_opened(fd, weft__stored_kind(&status, how->flags));
}

/* With O_NONBLOCK the caller wants what the first try gives. */
static int open_with_nonblock(int dir_fd, const char *path,
			      const struct open_how *how)
{
	struct statx status = { .stx_mask = 0 };
	int fd = open_cached(dir_fd, path, *how);

	if (fd < 0)
		return fd;
	(void)weft__look_fd(fd, WEFT__STORED_MASK, &status);
	return weft__file_opened(fd, weft__stored_kind(&status, how->flags));
}

/* By this thread, or -EAGAIN. */
static int open_quickly(int dir_fd, const char *path,
			const struct open_how *how, enum opener *ret_opener)
{
	*ret_opener = BY_RING;
	if (how->flags & O_PATH || makes(how->flags))
		return -EAGAIN;
	if (!(how->flags & O_NONBLOCK))
		return open_by_look(dir_fd, path, how, ret_opener);
	return how->flags & CHANGES ? -EAGAIN :
				      open_with_nonblock(dir_fd, path, how);
}

/* Errors of a try that say nothing of the path. */
static bool open_is_open(int r)
{
	return weft__call_wants_ring(r) || r == -EINVAL || r == -ENXIO ||
	       r == -EPERM;
}

/* By a thread of the pool. */
static int64_t open_waits(void *arg)
{
	const struct weft__request *request = arg;

	return request->opcode == WEFT__OPCODE_OPENAT ?
		       weft__may_wait_openat(request->fd, request->memory,
					     (int)request->how, request->mode) :
		       weft__may_wait_openat2(request->fd, request->memory,
					      request->open_how);
}

/* Has the names looked up, which are cached then.  An error is one of the open
 * as well, and is left to it. */
static int look_up(int dir_fd, const char *path, const struct open_how *how,
		   enum opener *ret_opener)
{
	struct statx status;
	int r;
	struct weft__request request = {
		.opcode = WEFT__OPCODE_STATX,
		.fd = dir_fd,
		.memory = path,
		.mask = STATX_TYPE,
		.how = AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		.status = &status,
	};

	if (how->flags & O_NOFOLLOW)
		request.how |= AT_SYMLINK_NOFOLLOW;
	r = weft__op_run(&request, NULL, WEFT__OP_AT_ONCE);
	if (r == 0 && waits_for_others(&status))
		*ret_opener = BY_POOL;
	return r;
}

static int open_run(struct weft__worker *worker, struct weft__request *request,
		    const struct open_how *how)
{
	enum opener opener;
	int r = open_quickly(request->fd, request->memory, how, &opener);
	bool ran = false;

	if (opener == BY_LOOKING) {
		r = look_up(request->fd, request->memory, how, &opener);
		if (weft__waits_was_interrupted(r))
			return r;
		worker = weft__worker_self();
		r = opener == BY_POOL ?
			    -EAGAIN :
			    open_quickly(request->fd, request->memory, how,
					 &opener);
	}
	if (!open_is_open(r))
		return (int)weft__call_ready(worker, r);
	if (opener == BY_POOL)
		r = (int)weft__waits_run(open_waits, request, &ran);
	if (ran || weft__waits_was_interrupted(r))
		return r < 0 ? r : weft__file_opened(r, WEFT__FD_UNKNOWN);
	if (!(how->flags & (O_NONBLOCK | O_PATH)))
		request->flags |= WEFT__REQUEST_BLOCKS;
	r = weft__op_run(request, NULL, WEFT__OP_AT_ONCE);
	return r < 0 ? r : weft__file_opened(r, WEFT__FD_UNKNOWN);
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
	return r < 0 ? r : open_run(worker, &request, &how);
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
	unsigned tries = 0;
	int r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	r = path ? how_take(how, how_bytes, &taken) : -EFAULT;
	if (r < 0)
		return r;
	do
		r = open_run(weft__worker_self(), &request, &taken);
	while (weft__syscall_openat2_again(&taken, r, &tries));
	return r;
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

static int statx_run(int fd, struct weft__fd *entry, const char *path,
		     struct statx *ret_status, unsigned mask, int flags)
{
	struct weft__request request = {
		.opcode = WEFT__OPCODE_STATX,
		.fd = fd,
		.memory = path,
		.mask = mask,
		.how = (uint32_t)flags,
		.status = ret_status,
	};

	return weft__op_run(&request, entry, WEFT__OP_AT_ONCE);
}

/* An automount is not triggered, as by stat(2). */
static int stat_run(int fd, struct weft__fd *entry, const char *path, int flags,
		    struct stat *ret_stat)
{
	struct statx result;
	int r = statx_run(fd, entry, path, &result, STATX_BASIC_STATS,
			  flags | AT_NO_AUTOMOUNT);

	if (r < 0)
		return r;
	stat_from(&result, ret_stat);
	return 0;
}

/* Of others than local files the kernel's caches may be out of date. */
static bool stat_looked(int r, const struct statx *status,
			struct stat *ret_stat)
{
	if (r < 0 || !weft__look_is_local(status))
		return false;
	stat_from(status, ret_stat);
	return true;
}

int weft_stat(const char *path, struct stat *ret_stat)
{
	static const struct open_how follow;
	struct weft__worker *worker;
	struct statx status;
	int r = weft__call_begin(&worker);

	if (r == 0 && (!path || !ret_stat))
		r = -EFAULT;
	if (r < 0)
		return r;
	r = weft__look_path(AT_FDCWD, path, &follow, STATX_BASIC_STATS,
			    &status);
	if (r == -ENOENT || stat_looked(r, &status, ret_stat))
		return (int)weft__call_ready(worker, r);
	return stat_run(AT_FDCWD, NULL, path, 0, ret_stat);
}

int weft_fstat(int fd, struct stat *ret_stat)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	struct statx status;
	int kind, r = weft__call_begin_fd(fd, &worker, &entry);

	if (r == 0 && !ret_stat)
		r = -EFAULT;
	if (r < 0)
		return r;
	kind = weft__fd_kind(entry, fd);
	if (kind >= 0 && weft__fd_is_local(kind) &&
	    stat_looked(weft__look_fd(fd, STATX_BASIC_STATS, &status), &status,
			ret_stat))
		return (int)weft__call_ready(worker, 0);
	return stat_run(fd, entry, "", AT_EMPTY_PATH, ret_stat);
}

/* Can the look tell?  It takes no other flags. */
static bool statx_is_plain(int flags)
{
	return !(flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT |
			   AT_STATX_DONT_SYNC));
}

int weft_statx(int dir_fd, const char *path, int flags, unsigned mask,
	       struct statx *ret_status)
{
	struct open_how how = {
		.flags = flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0
	};
	struct weft__worker *worker;
	struct statx status;
	int r = weft__call_begin(&worker);

	if (r == 0 && (!path || !ret_status))
		r = -EFAULT;
	if (r < 0)
		return r;
	r = statx_is_plain(flags) ?
		    weft__look_path(dir_fd, path, &how, mask, &status) :
		    -EAGAIN;
	if (r == 0 && !weft__look_is_local(&status))
		r = -EAGAIN;
	if (r == 0 || r == -ENOENT) {
		if (r == 0)
			*ret_status = status;
		return (int)weft__call_ready(worker, r);
	}
	r = statx_run(dir_fd, NULL, path, &status, mask, flags);
	if (r == 0)
		*ret_status = status;
	return r;
}

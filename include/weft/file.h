/* SPDX-License-Identifier: MIT */
/*
 * Open files: their size, mode and times, locks, temporary files, replacing a
 * file as a whole, and buffers for O_DIRECT.  <weft/io.h> reads and writes
 * them, <weft/fs.h> has the calls on names, and its rules for errors and for
 * cancellation are those of the calls here.
 */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* ---- Size, mode, times, writing back ------------------------------------- */

/* As the calls of their names.  Suspend.  weft_close() waits for those that
 * have begun.  -EBADF: not open, or a task is closing it. */
WEFT_API int weft_ftruncate(int fd, off_t bytes) WEFT_WARN_UNUSED;
WEFT_API int weft_fallocate(int fd, int mode, off_t offset,
			    off_t bytes) WEFT_WARN_UNUSED;
WEFT_API int weft_fchmod(int fd, mode_t mode) WEFT_WARN_UNUSED;
WEFT_API int weft_fchown(int fd, uid_t uid, gid_t gid) WEFT_WARN_UNUSED;
struct timespec;
WEFT_API int weft_futimens(int fd,
			   const struct timespec *times) WEFT_WARN_UNUSED;
WEFT_API int weft_sync_file_range(int fd, off_t offset, off_t bytes,
				  unsigned flags) WEFT_WARN_UNUSED;
WEFT_API int weft_syncfs(int fd) WEFT_WARN_UNUSED;

/* ---- Locks --------------------------------------------------------------- */

/*
 * As flock(2): LOCK_SH, LOCK_EX, LOCK_UN, and LOCK_NB for -EAGAIN in place of
 * waiting.  And as fcntl(2) with F_OFD_SETLKW, which waits, F_OFD_SETLK, which
 * does not (-EAGAIN), and F_OFD_GETLK; other commands give -EINVAL, since locks
 * of a process mean nothing between tasks.  Both locks belong to the open file:
 * descriptors that dup(2) made share it, tasks that use the same descriptor do
 * not exclude each other, and its last close drops it.
 *
 * A task that waits suspends, and takes no thread.  It tries again after a
 * pause, which grows from 50 us to 50 ms: so it has the lock at most 50 ms
 * after it is free, and waiters have no order.  Cancellation and WEFT_WITHIN
 * end the wait immediately, and weft_close() within that pause (-ECANCELED); a
 * call that failed has taken no lock.
 */
WEFT_API int weft_flock(int fd, int operation) WEFT_WARN_UNUSED;
struct flock;
WEFT_API int weft_fcntl_lock(int fd, int command,
			     struct flock *lock) WEFT_WARN_UNUSED;

/* ---- Temporary files ----------------------------------------------------- */

/* A file that is there only until it is closed, unless it gets a name.  Place
 * it where you like; weft_temp_open() fills it in. */
struct weft_temp {
	int fd; /* for reading and writing; not for closing */
	unsigned reserved;
	uint64_t private_words[5];
};

/*
 * Makes a file in a directory, with this mode, less the umask.  It has no name
 * (O_TMPFILE), so nothing of it is left after a crash.  On a file system that
 * cannot do that it has a name, ".weft-" and 16 digits and ".tmp", which
 * weft_temp_close() removes.  Suspends.  Returns 0 or an error of openat(2).
 */
WEFT_API int weft_temp_open(struct weft_temp *ret_temp, int dir_fd,
			    const char *dir, mode_t mode) WEFT_WARN_UNUSED;

/* Gives it a name in the same file system, at most once.  Suspends.  Returns 0,
 * -EEXIST (a name of another file is never taken), -EINVAL (it has one
 * already), or another error of linkat(2); it can be tried again then. */
WEFT_API int weft_temp_link(struct weft_temp *temp, int dir_fd,
			    const char *path) WEFT_WARN_UNUSED;

/* Closes it; without a name it is gone.  Suspends, but ignores deadlines and
 * cancellation.  Also after a failed weft_temp_open(), and a second time: then
 * it does nothing.  Returns 0, or -EPERM (not in a task: nothing was done). */
WEFT_API int weft_temp_close(struct weft_temp *temp);

/* ---- Replacing a file ---------------------------------------------------- */

/*
 * Puts a new file in the place of an old one, or of none, as a whole: whenever
 * the process or the machine stops, the path leads to the old file or to the
 * new one with all its data.
 *
 *	r = weft_replace_begin(&new_file, AT_FDCWD, "config", NULL);
 *	if (r == 0) {
 *		r = weft_write_all(new_file.fd, text, bytes, NULL);
 *		if (r == 0)
 *			r = weft_replace_commit(&new_file);
 *		weft_replace_abort(&new_file);
 *	}
 *
 * A process that is killed in the commit may leave a file with a temporary name
 * as of weft_temp_open().  A symbolic link is replaced itself.
 */
struct weft_replace {
	int fd; /* for writing; not for closing */
	unsigned reserved;
	uint64_t private_words[39];
};

enum {
	/* The new file gets the mode and the ACL of the old one (which without
	 * /proc must be readable), its owner and group as far as the process
	 * may give them, and without them no set-user-ID, and no rights of the
	 * group. */
	WEFT_REPLACE_KEEP = 1 << 0,
	/* Nothing is synced: whole after kill(2), not after a power cut. */
	WEFT_REPLACE_NO_SYNC = 1 << 1,
};

struct weft_replace_opts {
	size_t size;
	unsigned flags;
	mode_t mode; /* of the new file, less the umask */
	uint64_t reserved[2];
};
#define WEFT_REPLACE_OPTS_INIT \
	{ sizeof(struct weft_replace_opts), 0, 0666, { 0, 0 } }

/* Makes the new file, in the directory of the old one, which the process may
 * read and write.  Suspends.  Returns 0, -EINVAL (options, or the path ends
 * with "/", "." or ".."), -ENAMETOOLONG, or an error of openat(2). */
WEFT_API int weft_replace_begin(struct weft_replace *ret_replace, int dir_fd,
				const char *path,
				const struct weft_replace_opts *opts)
	WEFT_WARN_UNUSED;

/* Syncs the file, moves it to its place, syncs the directory, and closes the
 * descriptor.  Suspends.  Returns 0, or an error of fsync(2), linkat(2) or
 * renameat(2): the old file is as it was, except if the last sync failed; call
 * weft_replace_abort().  -EINVAL: it was committed or aborted before.  A commit
 * that has begun is waited for. */
WEFT_API int weft_replace_commit(struct weft_replace *replace)
	WEFT_WARN_UNUSED;

/* Drops the new file, unless it was committed.  Suspends, but ignores deadlines
 * and cancellation.  Returns 0, or -EPERM (not in a task: nothing was done). */
WEFT_API int weft_replace_abort(struct weft_replace *replace);

/* All of it with data in memory, in one step that is waited for once it has
 * begun.  Suspends.  Errors: those of all three, and of write(2). */
WEFT_API int weft_replace_file(int dir_fd, const char *path, const void *data,
			       size_t bytes,
			       const struct weft_replace_opts *opts)
	WEFT_WARN_UNUSED;

/* ---- O_DIRECT ------------------------------------------------------------ */

/* Memory for weft_pread() and weft_pwrite() on a descriptor with O_DIRECT.
 * There the memory, and the offset and the number of bytes, have to be
 * multiples of two numbers, or the calls return -EINVAL on most file systems.
 * weft_sendfile(), weft_copy() and pipelines have no such memory: they are for
 * descriptors without O_DIRECT. */
struct weft_direct {
	void *memory;	      /* all zero at first */
	size_t bytes;	      /* a multiple of both alignments */
	size_t memory_align;  /* in bytes */
	size_t offset_align;  /* in bytes; also of the length */
	uint64_t reserved[2];
};

/* Gets at least so many bytes, aligned as the file needs it, or, if the file
 * system does not say, to pages.  Suspends.  Returns 0,
 * -EINVAL (no bytes, or far too many), -EBADF, -ENOMEM, or an error of
 * statx(2). */
WEFT_API int weft_direct_alloc(struct weft_direct *ret_direct, int fd,
			       size_t bytes) WEFT_WARN_UNUSED;

/* Frees it.  From any thread.  NULL, or twice: does nothing. */
WEFT_API void weft_direct_free(struct weft_direct *direct);

WEFT_END_DECLS

#endif

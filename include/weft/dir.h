/* SPDX-License-Identifier: MIT */
/*
 * Directories: reading the names in one, many at a time.
 *
 *	struct weft_dir dir;
 *	struct weft_dir_entry entry;
 *
 *	r = weft_dir_open(&dir, AT_FDCWD, "/etc");
 *	while (r >= 0 && (r = weft_dir_next(&dir, &entry)) > 0)
 *		puts(entry.name);
 *	weft_dir_close(&dir);
 *
 * One task at a time uses a struct weft_dir.
 */
#ifndef WEFT_DIR_H
#define WEFT_DIR_H

#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Place it where you like; weft_dir_open() or weft_dir_init() fills it in.
 * After a failure of theirs weft_dir_close() does nothing. */
struct weft_dir {
	int fd; /* for calls with a dir_fd, and for no reading */
	unsigned reserved;
	uint64_t private_words[5];
};

struct weft_dir_entry {
	const char *name; /* any bytes but 0 and '/'; until the next call */
	size_t name_bytes;
	uint64_t inode;
	unsigned char type; /* DT_REG, DT_DIR, ... of <dirent.h>; DT_UNKNOWN:
			       the file system does not say */
};

/* Opens a directory; one that is the last part of path may be a symbolic link.
 * Suspends.  Returns 0 or an error of openat(2), such as -ENOENT or -ENOTDIR;
 * -EFAULT, -ENOMEM, -ECANCELED, -ETIMEDOUT, -EPERM (not in a task). */
WEFT_API int weft_dir_open(struct weft_dir *ret_dir, int dir_fd,
			   const char *path) WEFT_WARN_UNUSED;

/* The same for a descriptor that is open, as from weft_openat2() with
 * RESOLVE_BENEATH, and is ret_dir's from now on.  Does not suspend.  Returns 0,
 * or -EPERM (not in a task), -ENOMEM: the descriptor is still the caller's. */
WEFT_API int weft_dir_init(struct weft_dir *ret_dir, int fd) WEFT_WARN_UNUSED;

/*
 * The next name, without "." and "..".  Suspends once for each 32 KiB of names,
 * which a thread of the pool of weft_blocking() reads; cancellation and
 * WEFT_WITHIN are noticed there alone.  The order is the file system's.  A name
 * that is made or removed meanwhile may come or not.
 *
 * Returns 1; 0: there are no more; an error of getdents64(2) (-ENOENT: the
 * directory was removed; -ENOTDIR); -ECANCELED, -ETIMEDOUT: the next call goes
 * on with the same name; -EPERM (not in a task), -EFAULT, or -EBADF (closed).
 */
WEFT_API int weft_dir_next(struct weft_dir *dir,
			   struct weft_dir_entry *ret_entry) WEFT_WARN_UNUSED;

/* Closes the descriptor and frees the memory.  Suspends, but ignores deadlines
 * and cancellation.  Returns 0, or -EPERM (not in a task: nothing was done). */
WEFT_API int weft_dir_close(struct weft_dir *dir);

WEFT_END_DECLS

#endif

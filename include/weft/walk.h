/* SPDX-License-Identifier: MIT */
/*
 * Trees of files: walking through one, and removing one.
 *
 *	static int print(const struct weft_walk_entry *entry, void *arg)
 *	{
 *		if (entry->event == WEFT_WALK_ENTRY)
 *			printf("%s\n", entry->path);
 *		return 0;
 *	}
 *
 *	r = weft_walk(AT_FDCWD, "/usr/include", print, NULL, NULL);
 *
 * The system calls are made on threads of the blocking pool, many in a batch,
 * in a lane of the call's own.  Directories are opened from the root of the
 * tree, and a symbolic link on the way is refused.  So a directory that is
 * swapped for a link meanwhile leads neither call out of the tree.  Names are
 * bytes, and paths may be of any length.  A call needs few descriptors, however
 * deep the tree is.
 */
#ifndef WEFT_WALK_H
#define WEFT_WALK_H

#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

struct statx;

/* ---- Walking ---------------------------------------------------------- */

enum weft_walk_event {
	WEFT_WALK_ENTRY, /* a file; a directory before its contents */
	WEFT_WALK_LEAVE, /* a directory after its contents */
	WEFT_WALK_ERROR, /* `error` says what failed with this file */
};

/* One visit.  All is valid during the visit alone. */
struct weft_walk_entry {
	const char *path; /* from the root of the tree; "" for the root */
	const char *name; /* the last part of path; for the root the path that
			   * the caller gave */
	size_t path_bytes;
	size_t name_bytes;
	uint64_t inode; /* as the directory gives it; of the root 0 */
	/* The directory that holds the file, for calls such as openat(dir_fd,
	 * name, O_NOFOLLOW).  -1 without WEFT_WALK_DIR_FD, and if it could not
	 * be opened again. */
	int dir_fd;
	int error;	/* negative errno for WEFT_WALK_ERROR, else 0 */
	unsigned depth; /* of the root 0 */
	enum weft_walk_event event;
	unsigned char type; /* DT_REG and so on of <dirent.h> */
	/* With a status_mask; NULL for WEFT_WALK_LEAVE and WEFT_WALK_ERROR. */
	const struct statx *status;
};

/* Results of a visit, beside 0 to go on. */
#define WEFT_WALK_PRUNE 1 /* does not enter the directory */

/* Visits a file.  It runs in a task of the walk, and may suspend.  A negative
 * result ends the walk, which returns it.  Unless `tasks` is 1 or the walk is
 * sorted, several tasks call it at the same time. */
typedef int (*weft_walk_fn)(const struct weft_walk_entry *entry, void *arg);

/* In the order of names, by their bytes; a directory's contents follow it
 * immediately.  One task then makes all visits.  All names of the directories
 * that it is in are in memory. */
#define WEFT_WALK_SORTED (1u << 0)
/* Symbolic links count as the file that they name; those that name none count
 * as links.  A directory that is its own ancestor is reported (-ELOOP), and not
 * entered. */
#define WEFT_WALK_FOLLOW (1u << 1)
/* Does not enter directories on another device than the root's. */
#define WEFT_WALK_ONE_DEVICE (1u << 2)
/* Visits directories also after their contents (WEFT_WALK_LEAVE), whether they
 * were entered or not. */
#define WEFT_WALK_POST (1u << 3)
/* Entries have a dir_fd. */
#define WEFT_WALK_DIR_FD (1u << 4)

/* Options of a walk.  Start from WEFT_WALK_OPTS_INIT. */
struct weft_walk_opts {
	size_t size;
	unsigned flags;
	unsigned depth_max;   /* directories this deep are not entered */
	unsigned status_mask; /* STATX_ flags: each entry has a status */
	unsigned tasks;	      /* that visit; 0: two a processor, at most 32 */
};
#define WEFT_WALK_OPTS_INIT \
	{ sizeof(struct weft_walk_opts), 0, ~0u, 0, 0 }

/*
 * Visits each file of a tree: the file that `path` names, from dir_fd, and if
 * it is a directory, all below.  Suspends.  A directory is visited before its
 * contents are; otherwise the order is any, unless it is asked for.  Files that
 * appear or vanish meanwhile are visited or not.
 *
 * A failure below the root does not end the walk.  It is visited as
 * WEFT_WALK_ERROR: a directory that cannot be opened or read, a file whose
 * status cannot be read, each with the error of the call, such as -EACCES,
 * -ENOENT for one that has vanished, -ENOTDIR or -ELOOP for one that was
 * swapped for another file meanwhile.
 *
 * A cancellation or a deadline ends the walk between two batches of at most a
 * few thousand visits, and in a visit that suspends.  When the call returns, no
 * visit runs.
 *
 * Returns 0, or the first negative result of a visit, -ECANCELED, -ETIMEDOUT,
 * -ENOMEM, -EAGAIN (no thread, or no task), -EINVAL (wrong options, or NULL
 * visit), -EFAULT (NULL path), -EPERM (not in a task), or why the root cannot
 * be opened: -ENOENT, -EACCES, -ENOTDIR, -EMFILE, -EBADF and others of
 * open(2).
 */
WEFT_API int weft_walk(int dir_fd, const char *path, weft_walk_fn visit,
		       void *arg,
		       const struct weft_walk_opts *opts) WEFT_WARN_UNUSED;

/* ---- Removing --------------------------------------------------------- */

struct weft_remove_counts {
	uint64_t files;	      /* that were removed, other than directories */
	uint64_t directories; /* that were removed */
	uint64_t failed;      /* that could not be removed, or not be entered */
};

/* Reports a file that was removed, with error 0, or that could not be.  path is
 * as in a walk.  It runs in a task, after the fact, and may suspend; a negative
 * result ends the removal.  One task at a time calls it. */
typedef int (*weft_remove_fn)(const char *path, int error, void *arg);

/* Goes on after an error with what can still be removed. */
#define WEFT_REMOVE_GO_ON (1u << 0)
/* Does not enter a mount point.  It counts as failed, with -EXDEV.  A kernel
 * before 5.8 in which a sandbox refuses openat2(2) does not tell a mount of the
 * same device. */
#define WEFT_REMOVE_ONE_MOUNT (1u << 1)
/* Leaves the root itself, emptied. */
#define WEFT_REMOVE_CONTENTS (1u << 2)
/* Reports failures only. */
#define WEFT_REMOVE_QUIET (1u << 3)

/* Options of a removal.  Start from WEFT_REMOVE_OPTS_INIT. */
struct weft_remove_opts {
	size_t size;
	unsigned flags;
	unsigned tasks; /* 0: two a processor, at most 32 */
	weft_remove_fn report; /* or NULL */
	void *arg;	       /* of report */
	/* Filled in any case, if not NULL: zero if nothing was removed. */
	struct weft_remove_counts *ret_counts;
};
#define WEFT_REMOVE_OPTS_INIT \
	{ sizeof(struct weft_remove_opts), 0, 0, NULL, NULL, NULL }

/*
 * Removes a file, or a directory with all below it.  Suspends.  Links are
 * removed and never followed, so nothing outside of the tree is touched, even
 * while other processes swap directories for links.  (A directory that another
 * process moves out of the tree is still emptied, if the removal has just
 * entered it.)  Files that vanish meanwhile are not counted.
 *
 * A cancellation or a deadline ends the call within a few milliseconds of work;
 * what was removed by then stays so.
 *
 * Returns 0, or the first error: of unlink(2) and open(2), such as -EACCES,
 * -EPERM, -EROFS, -ENOENT (there is no such root), -ENOTEMPTY (files appear
 * faster than they are removed), -EXDEV (a mount point, with
 * WEFT_REMOVE_ONE_MOUNT), -ENOTDIR (with a slash at the end of the path, or
 * WEFT_REMOVE_CONTENTS); the negative result of report; -ECANCELED,
 * -ETIMEDOUT, -ENOMEM, -EAGAIN (no thread, or no task); -EINVAL (wrong options;
 * a path that is empty or "/"; or one that ends in "." or "..", without
 * WEFT_REMOVE_CONTENTS); -EFAULT (NULL path); -EPERM (not in a task).
 */
WEFT_API int weft_remove_tree(int dir_fd, const char *path,
			      const struct weft_remove_opts *opts)
	WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif

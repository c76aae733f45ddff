/* SPDX-License-Identifier: MIT */
/*
 * Watching files, directories and trees for changes, by way of inotify(7).
 *
 *	struct weft_fs_watch *watch;
 *	struct weft_fs_event event;
 *
 *	r = weft_fs_watch_open(&watch);
 *	r = weft_fs_watch_add(watch, "src", WEFT_FS_ALL, WEFT_FS_TREE);
 *	while ((r = weft_fs_watch_next(watch, &event)) == 0)
 *		printf("%x %s\n", event.kind, event.path);
 *	weft_fs_watch_close(watch);
 *
 * A program that applies the events in their order to a list of names that it
 * made after weft_fs_watch_add() has the names that are there, except after
 * WEFT_FS_LOST:
 *
 *	created	 adds the name	    removed  takes it away, and all beneath it
 *	moved	 replaces what had the name, and takes all beneath it along
 *
 * In a tree, directories that are made or moved in are watched, too; what they
 * hold by then is reported as created.  A name there may be reported as created
 * twice, and a name as removed that never was reported.  A directory that is
 * moved within the tree is watched on under its new name.  A move is reported
 * as removed and created if its other half is outside the tree, if a directory
 * was moved on or replaced before its first move was read, and if the halves do
 * not come close together.  Symbolic links are not followed, and other mounts
 * are not entered.  Changes through mmap(2), and those that another machine
 * makes to a network file system, are not seen.
 *
 * One task at a time uses a watch: a second one gets -EBUSY.  The calls that
 * suspend obey WEFT_WITHIN and cancellation; an interrupted call loses no
 * event.
 */
#ifndef WEFT_FS_WATCH_H
#define WEFT_FS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Kinds of events. */
enum {
	WEFT_FS_CREATED = 1 << 0, /* made, linked, moved in, or replaced */
	WEFT_FS_REMOVED = 1 << 1, /* unlinked or moved out */
	WEFT_FS_MOVED = 1 << 2,	  /* event.from is the old name */
	WEFT_FS_CHANGED = 1 << 3, /* written to, or cut */
	WEFT_FS_CLOSED = 1 << 4,  /* closed by a process that could write */
	WEFT_FS_STATUS = 1 << 5,  /* mode, owner, times, links, attributes */
	WEFT_FS_ALL = (1 << 6) - 1,

	/* Events were lost: more came than the kernel keeps
	 * (/proc/sys/fs/inotify/max_queued_events), or memory ran out.  By now
	 * all directories of the trees are watched again.  A program that reads
	 * its trees again after this event misses nothing. */
	WEFT_FS_LOST = 1 << 6,
	/* The root is no longer watched.  event.error: -ENOENT, it was removed
	 * or replaced; -ESTALE, moved; -ENODEV, its file system was unmounted.
	 * The removal of a directory is reported when the last process has
	 * left it. */
	WEFT_FS_GONE = 1 << 7,
	/* The directory event.path of a tree cannot be watched; event.error is
	 * an error of weft_fs_watch_add(). */
	WEFT_FS_UNWATCHED = 1 << 8,
};

/* Flags of weft_fs_watch_add(). */
enum {
	WEFT_FS_TREE = 1 << 0, /* all directories beneath it, too */
};

struct weft_fs_event {
	unsigned kind;	   /* one of those above */
	bool is_directory;
	int root;	   /* what weft_fs_watch_add() returned; -1: LOST */
	int error;
	/* Relative to what was added, which itself is ""; any bytes but 0,
	 * which ends them.  Valid until the next call on the watch. */
	const char *path;
	size_t path_bytes;
	const char *from; /* of WEFT_FS_MOVED, else NULL */
	size_t from_bytes;
};

struct weft_fs_watch;

/* Opens a watch, of nothing yet.  Does not suspend.  Returns 0, -EPERM (not in
 * a task), -ENOMEM, -EMFILE (the process has no more descriptors, or the user
 * no more inotify instances: max_user_instances), -ENFILE. */
WEFT_API int weft_fs_watch_open(struct weft_fs_watch **ret_watch)
	WEFT_WARN_UNUSED;

/*
 * Adds a file, a directory with its entries, or with WEFT_FS_TREE a tree.  The
 * path's symbolic links are followed now, once.  kinds: a set of those up to
 * WEFT_FS_ALL; the others are always reported.  Names that are there already
 * are not reported.  Suspends.  Returns the number of the root, from 0 on, or
 *
 *	-ENOSPC		the user's watches do not suffice: max_user_watches, one
 *			for each directory
 *	-EEXIST		it is watched already, also as a part of a tree
 *	-EINVAL		no kind, an unknown flag, WEFT_FS_TREE for no directory
 *	-EBUSY, -ENOMEM, -ECANCELED, -ETIMEDOUT, -EPERM; -EACCES (reading it is
 *			not allowed), -ENOENT and other errors of open(2)
 *
 * and then nothing is added.
 */
WEFT_API int weft_fs_watch_add(struct weft_fs_watch *watch, const char *path,
			       unsigned kinds, unsigned flags)
	WEFT_WARN_UNUSED;

/* Waits for the next event.  Suspends.  Returns 0, -EBUSY, -ECANCELED,
 * -ETIMEDOUT, -EPERM, or an error of weft_read(). */
WEFT_API int weft_fs_watch_next(struct weft_fs_watch *watch,
				struct weft_fs_event *ret_event)
	WEFT_WARN_UNUSED;

/* The same, but returns -EAGAIN if there is no event yet.  It does suspend
 * where directories have to be read. */
WEFT_API int weft_fs_watch_try_next(struct weft_fs_watch *watch,
				    struct weft_fs_event *ret_event)
	WEFT_WARN_UNUSED;

/* The descriptor, which stays the watch's, for WEFT_READY(fd, POLLIN) in a
 * select, after weft_fs_watch_try_next() has returned -EAGAIN. */
WEFT_API int weft_fs_watch_fd(const struct weft_fs_watch *watch);

/* Ends the watch; NULL: does nothing.  No other task may be in a call on it.
 * As weft_close(): suspends, and is done in full except for -EPERM. */
WEFT_API int weft_fs_watch_close(struct weft_fs_watch *watch);

WEFT_END_DECLS

#endif

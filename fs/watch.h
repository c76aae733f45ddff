/* SPDX-License-Identifier: MIT */
/*
 * Watch - the directories that a watch knows, as a tree, and its events.
 *
 *	inotify --> input --> watch_events.c --> queue --> the caller
 *	                         |       ^
 *	                  new directories, overflow
 *	                         v       |
 *	                       watch_scan.c, on a thread of the pool
 *
 * The kernel names an inode (wd) and an entry in it.  The tree turns that into
 * a path.  It is as old as the event that was decoded last, while the file
 * system is as new as now.  So a name is opened from the root down, and each
 * directory on the way must have the watch (wd) that the tree says: otherwise
 * the name means another directory by now, and the events that tell so are
 * still to come.
 *
 * Invariants
 *   WAT1  A directory was, when it was bound, the entry of its name in its
 *         parent's inode, which was watched by then.  So every later change of
 *         that entry has an event behind those decoded so far.
 *   WAT2  A wd belongs to one directory.  A second name for it means that an
 *         event of the first is still to come: the first is dropped.
 *   WAT3  A directory whose entries could not be looked at is due for another
 *         look (`incomplete`) when the kernel's queue is empty: then the tree
 *         is as new as the file system.
 *   WAT4  A scan comes before the events that are decoded after it, and reports
 *         what the directory holds at that time.
 *
 * Concurrency: one task at a time, which may lend it to a thread of the pool;
 * `busy` refuses a second.
 *
 * Orderings
 *   [watch.busy]  the task that leaves, store release -> the swap acquire of
 *       the next one: all of the watch.  No model: a lock that is only tried.
 *
 * Rejected
 *   A descriptor for each directory: it would need no verification, but hold
 *   the file system mounted, and descriptors are few.
 */
#ifndef WEFT_FS_WATCH_INTERNAL_H
#define WEFT_FS_WATCH_INTERNAL_H

#include <limits.h>
#include <sys/inotify.h>
#include <sys/types.h>
#include <weft/blocking.h>
#include <weft/fs_watch.h>

#include "runtime/base/atomic.h"

struct weft_allocator;

enum weft__watch_scan {
	WEFT__SCAN_NONE,
	WEFT__SCAN_CHECK, /* report only directories that were not known */
	WEFT__SCAN_FRESH, /* report what is in it */
	WEFT__SCAN_QUIET, /* watch all beneath it, report nothing */
};

/* A root, or a directory of a tree. */
struct weft__watch_dir {
	struct weft__watch_dir *parent; /* NULL: a root */
	struct weft__watch_dir *first, *next, *prev; /* children, siblings */
	struct weft__watch_dir *by_wd, *by_name; /* in their buckets */
	struct weft__watch_dir *due, *due_prev; /* in the list of scans */
	struct weft__watch_root *root;
	int wd; /* -1: none */
	uint32_t hash; /* of parent and name */
	uint32_t seen; /* the scan of the parent that saw it last */
	uint8_t scan;	    /* enum weft__watch_scan: of the list */
	uint8_t incomplete; /* the scan that it is to have later, WAT3 */
	bool unread; /* it could not be read, and the caller was told */
	uint32_t name_bytes;
	char *name; /* of a root its absolute path */
};

struct weft__watch_root {
	struct weft__watch_root *next;
	struct weft__watch_dir *dir; /* NULL: gone */
	unsigned kinds;
	int number;
	bool is_tree;
	bool is_directory;
	dev_t dev; /* of a file, which is not a directory */
	ino_t ino;
};

struct weft__watch_event {
	struct weft__watch_event *next;
	struct weft_fs_event event;
	size_t bytes; /* with the texts behind it; 0: not allocated */
};

enum { WEFT__WATCH_INPUT_BYTES = 16 << 10 };

/* Directories are read while fewer events than these wait: the sooner, the
 * fewer of them have been moved on by then; but a large tree that is moved in
 * is not all in memory. */
enum { WEFT__WATCH_QUEUED_MAX = 4096 };


struct weft_fs_watch {
	const struct weft_allocator *memory;
	int fd;
	weft__atomic(bool) busy;
	int roots_count;
	struct weft__watch_root *roots;

	/* Directories, by wd and by parent and name. */
	struct weft__watch_dir **by_wd, **by_name;
	uint32_t buckets; /* of each; a power of two */
	uint32_t dirs;

	struct weft__watch_dir *due, *due_last; /* to be scanned */
	uint32_t scans; /* of directories that could be opened */
	uint32_t looked; /* scans at the last look at those incomplete */
	bool incomplete; /* a directory is */
	bool lost;	 /* WEFT_FS_LOST comes after the scans */
	bool adding;	 /* in weft_fs_watch_add(), which reads all */
	int add_error;	 /* of the scans of an add */

	struct weft__watch_event *queue, *queue_last;
	uint32_t queued;
	struct weft__watch_event *shown; /* the caller reads it */
	struct weft__watch_event lost_event;

	size_t input_at, input_bytes;
	char input[WEFT__WATCH_INPUT_BYTES]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	char entries[WEFT__WATCH_INPUT_BYTES] __attribute__((aligned(8)));
	/* Of the halves of a move.  A file system may have names longer than
	 * NAME_MAX. */
	char name_from[WEFT__WATCH_INPUT_BYTES];
	char name_to[WEFT__WATCH_INPUT_BYTES];
};

/* ---- The tree: watch_tree.c --------------------------------------------- */

struct weft__watch_dir *weft__watch_by_wd(struct weft_fs_watch *watch, int wd);
struct weft__watch_dir *weft__watch_child(struct weft_fs_watch *watch,
					  const struct weft__watch_dir *parent,
					  const char *name);

/* A directory without a wd; NULL: no memory. */
struct weft__watch_dir *weft__watch_dir_new(struct weft_fs_watch *watch,
					    struct weft__watch_root *root,
					    struct weft__watch_dir *parent,
					    const char *name);
void weft__watch_set_wd(struct weft_fs_watch *watch,
			struct weft__watch_dir *dir, int wd);

/* Gives it a new parent and name: 0, or -ENOMEM (nothing was done). */
int weft__watch_dir_move(struct weft_fs_watch *watch,
			 struct weft__watch_dir *dir,
			 struct weft__watch_dir *parent, const char *name);

/* Frees it and all beneath it, and gives their wds back. */
void weft__watch_dir_drop(struct weft_fs_watch *watch,
			  struct weft__watch_dir *dir);

/* Puts it into the list of those to be scanned; a root that is a file is looked
 * for under its name. */
void weft__watch_dir_due(struct weft_fs_watch *watch,
			 struct weft__watch_dir *dir,
			 enum weft__watch_scan scan);

/* Takes the first out of the list. */
struct weft__watch_dir *weft__watch_due_take(struct weft_fs_watch *watch,
					     enum weft__watch_scan *ret_scan);

/* The directory is incomplete: it is to have that scan, WAT3. */
void weft__watch_dir_later(struct weft_fs_watch *watch,
			   struct weft__watch_dir *dir,
			   enum weft__watch_scan scan);

/* All are incomplete: a directory was dropped that is somewhere. */
void weft__watch_check_all(struct weft_fs_watch *watch);

/* Puts into the list those that are incomplete. */
void weft__watch_later_due(struct weft_fs_watch *watch);

/* ---- Events: watch_events.c --------------------------------------------- */

/* Queues an event for the entry `name` (NULL: itself) of a directory, if the
 * caller wants this kind for the root.  Without memory the watch is lost. */
void weft__watch_emit(struct weft_fs_watch *watch, unsigned kind,
		      const struct weft__watch_dir *dir, const char *name,
		      bool is_directory, int error);

/* Events are lost: all is scanned again, and then the caller is told. */
void weft__watch_lost(struct weft_fs_watch *watch);

/* Reports the root as gone, and frees it. */
void weft__watch_root_gone(struct weft_fs_watch *watch,
			   struct weft__watch_dir *dir, int error);

/* Decodes input until there is an event, until a scan is due, or until the
 * input is used up.  alone: stops before what may need system calls; true: it
 * has stopped there. */
bool weft__watch_decode(struct weft_fs_watch *watch, bool alone);

/* ---- Reading directories, with system calls: watch_scan.c ---------------- */

/* Watches the entry of a directory: 0 if it is known there already, 1 if it is
 * new, or an error: -ENOENT, -ESTALE, -ENOTDIR if it is not there (any more);
 * -EXDEV, another mount; or what keeps it from being watched. */
int weft__watch_bind(struct weft_fs_watch *watch,
		     struct weft__watch_dir *parent, const char *name);

/* Is the directory at the place where the tree has it?  0, or an error as of
 * bind; -EEXIST: another one is. */
int weft__watch_verify(struct weft_fs_watch *watch,
		       struct weft__watch_dir *dir);

/* Watches a root: 0 or an error. */
int weft__watch_bind_root(struct weft_fs_watch *watch,
			  struct weft__watch_dir *dir);

/* Are directories to be read now? */
static inline bool weft__watch_scans(const struct weft_fs_watch *watch)
{
	return watch->due &&
	       (watch->adding || watch->queued < WEFT__WATCH_QUEUED_MAX);
}

/* Reads directories that are due, some at a time. */
void weft__watch_scan_due(struct weft_fs_watch *watch);

#endif

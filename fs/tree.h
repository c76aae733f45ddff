/* SPDX-License-Identifier: MIT */
/*
 * Tree - what a walk and a removal have in common: the directories still to be
 * done, and the tasks that share them.
 *
 *	struct weft__tree	a call: the root, the stack of directories
 *	struct weft__tree_dir	a directory that was found and is not finished
 *	struct weft__tree_hand	what one task of the crew opens directories
 *				with (tree_open.c)
 *
 * The tasks of a crew take directories from the top of one stack, in jobs on
 * the blocking pool, and push the directories that they find.  The stack keeps
 * the walk near to depth-first, so it stays short.  A task that finds the stack
 * empty waits; the first task starts others when there is more than it takes.
 *
 * Invariants
 *   TREE1  `pending` counts what keeps a directory: one until it was read to
 *       its end, and one for each directory below that is not finished.  At 0
 *       it is finished, and counts down its parent.
 *   TREE2  The ancestors of a directory exist while it does.  Their names do
 *       not change, so they are read without the lock.
 *   TREE3  Each permit of `more` is for one task that was counted in
 *       `waiting`.  A task that stops waiting for another reason takes itself
 *       out of the count, or leaves a permit that wakes another in vain.
 *
 * Concurrency
 *   The lock guards the stack, the counts and `pending`.  A directory that was
 *   taken from the stack belongs to the task, or its job.
 */
#ifndef WEFT_FS_TREE_H
#define WEFT_FS_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <weft/weft.h>

#include "fs/tree_call.h"
#include "runtime/base/lock.h"
#include "runtime/base/memory.h"

struct weft__tree_dir {
	struct weft__tree_dir *parent; /* immutable; NULL: the root */
	struct weft__tree_dir *next;   /* in the stack, under lock */
	uint64_t id;		       /* immutable, never 0 */
	uint64_t device, inode;	       /* if the tree looks at each */
	size_t path_bytes;	       /* immutable */
	uint32_t depth;		       /* immutable */
	uint32_t pending;	       /* under lock, TREE1 */
	int fd;			       /* its reading goes on there; or -1 */
	uint16_t name_bytes;	       /* immutable */
	uint8_t passes;		       /* that it was read, in a removal */
	bool leaves;		       /* finished, but for its last visit */
	bool halfway;		       /* counted by the tree */
	bool fails;		       /* under lock: something below stays */
	bool gone;		       /* is not there to be removed */
	char name[];		       /* immutable */
};

struct weft__tree {
	/* Immutable. */
	const struct weft_allocator *memory;
	struct weft_scope *scope;
	weft_fn work; /* of a task of the crew; arg: the tree's address */
	unsigned tasks_max;
	int root_fd;
	bool follows;	/* symbolic links */
	bool one_mount; /* refuses to open across mount points */
	bool by_steps;	/* the kernel has no openat2(2), or none for us */

	struct weft_lane lane;
	struct weft_sem more;

	struct weft__lock lock;
	struct weft__tree_dir *stack;
	size_t stack_count;
	uint64_t last_id;
	unsigned waiting; /* tasks, for directories */
	unsigned started; /* tasks */
	unsigned halfway; /* directories whose fd is kept */
	bool done;	  /* the root is finished */
};

/* By its id, so that the anchor may outlive the record.  0: none. */
struct weft__tree_anchor {
	uint64_t id;
	int fd;
};

struct weft__tree_hand {
	struct weft__tree *tree;
	/* Open directories that others are opened from. */
	struct weft__tree_anchor stretch, parent;
	struct weft__tree_dir **chain;
	size_t chain_max;
	/* The kernel's names are shorter than that. */
	char path[PATH_MAX + 1];
};

/* ---- Directories: tree.c ---------------------------------------------- */

/* Of a zeroed tree whose root is open or will be.  tasks: 0, or the most. */
void weft__tree_init(struct weft__tree *tree, weft_fn work, unsigned tasks);

/* A directory, pending, that its parent does not count yet.  NULL: no memory.
 */
struct weft__tree_dir *weft__tree_dir_new(struct weft__tree *tree,
					  struct weft__tree_dir *parent,
					  const char *name, size_t name_bytes);
void weft__tree_dir_free(struct weft__tree *tree, struct weft__tree_dir *dir);

/* Writes the path of a directory, of path_bytes bytes, without a zero. */
void weft__tree_path(const struct weft__tree_dir *dir, char *path);

/* Puts directories onto the stack: a list of new ones with one parent, the
 * last of which becomes the top; and one that was taken from it, which may be
 * the parent.  Each may be NULL.  One that is read in part, and so keeps its
 * fd, goes below those that were found in it, if not too many do already;
 * otherwise on top, to be read to its end first.  takes: the caller comes to
 * take one now, so that no other task is woken for that one: along a chain of
 * directories each would be done by another task. */
void weft__tree_push(struct weft__tree *tree, struct weft__tree_dir *first,
		     struct weft__tree_dir *again, bool takes);

/* The reading of such a directory has ended. */
void weft__tree_halfway_end(struct weft__tree *tree,
			    struct weft__tree_dir *dir);

/* NULL: there is none. */
struct weft__tree_dir *weft__tree_pop(struct weft__tree *tree);

/* Counts down; true: the directory is finished. */
bool weft__tree_drop(struct weft__tree *tree, struct weft__tree_dir *dir);

/* Gives up a directory, and each ancestor that this finishes. */
void weft__tree_give_up(struct weft__tree *tree, struct weft__tree_dir *dir);

/* The root is finished: all tasks of the crew end. */
void weft__tree_end(struct weft__tree *tree);

/* ---- The crew: tree.c ------------------------------------------------- */

/* Runs the crew, whose first directory is the root.  Gives up what is left of
 * the tree.  0, or the first error of a task. */
int weft__tree_run(struct weft__tree *tree, struct weft__tree_dir *root);

/* Waits for directories.  1: there may be one; 0: the end; or an error. */
int weft__tree_wait(struct weft__tree *tree);

/* Starts a further task, if there is work for it. */
void weft__tree_staff(struct weft__tree *tree);

/* ---- Opening: tree_open.c; in jobs ------------------------------------ */

/* Opens the root; finds out about openat2(2). */
int weft__tree_open_root(struct weft__tree *tree, int dir_fd, const char *path);

void weft__tree_hand_init(struct weft__tree_hand *hand,
			  struct weft__tree *tree);
void weft__tree_hand_fini(struct weft__tree_hand *hand);

/* A new descriptor of a directory, or an error. */
int weft__tree_open(struct weft__tree_hand *hand, struct weft__tree_dir *dir);

/* A descriptor of the parent, which is the hand's until its next call. */
int weft__tree_open_parent(struct weft__tree_hand *hand,
			   const struct weft__tree_dir *dir);

/* Takes over the descriptor of a directory, which is the parent of those that
 * are opened next. */
void weft__tree_keep_parent(struct weft__tree_hand *hand,
			    const struct weft__tree_dir *dir, int fd);

/* A new descriptor of the directory, opened from that of its parent. */
int weft__tree_open_at(struct weft__tree_hand *hand, int parent_fd,
		       const struct weft__tree_dir *dir);

#endif

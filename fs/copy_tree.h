/* SPDX-License-Identifier: MIT */
/*
 * Copy tree - the state of one weft_copy_tree(), which its runners share.
 *
 * A runner is a task that gives turns of a few milliseconds to the pool, one
 * after the other.  In a turn it takes from the queue, and copies:
 *
 *	a node		a directory that is to be opened, or read further
 *	names		a part of the names that another runner has read
 *
 * The queue is a stack.  A directory that has more names than one read gives
 * goes back to the queue, below the directories that this read found.  So the
 * queue has at most the directories of one read for each level.
 *
 * Descriptors.  A node has two while a runner uses it.  Of the nodes in no use
 * those that were used last keep theirs; the others are opened again when they
 * are needed, from the nearest one above that is open.  The directory must be
 * the same one then (-ESTALE).
 *
 * Names.  A directory that is made where there was none gets a temporary name
 * (`staged`), and all below it is made under its own name (`direct`).  It gets
 * its own name when all is in it, or when the call ends early.
 *
 * Invariants
 *   CPT1  A node's `pending` counts what is to be done before it is complete:
 *         its places in the queue, names that a runner has of it or that wait
 *         for a link, and directories in it.  The runner that takes the last
 *         one away ends the node.
 *   CPT2  A node exists while it is pending, has nodes below it, or is named in
 *         the table of links.
 *   CPT3  The call is complete when the queue is empty and no runner is busy.
 *
 * Concurrency.  Fields are immutable, of one runner, or under the lock, which
 * is never held across a system call.
 */
#ifndef WEFT_FS_COPY_TREE_H
#define WEFT_FS_COPY_TREE_H

#include <limits.h>

#include <weft/blocking.h>
#include <weft/sync.h>

#include "fs/copy_file.h"
#include "fs/copy_one.h"
#include "runtime/base/lock.h"
#include "runtime/base/memory.h"

enum {
	WEFT__COPY_NAMES_BYTES = 32 << 10,
	WEFT__COPY_GROUPS = 1024, /* chains of the table of links */
};

struct weft__copy_item {
	struct weft__copy_item *next; /* under lock */
	struct weft__copy_node *node; /* immutable */
	size_t bytes; /* of names behind it; 0: the node itself */
};

struct weft__copy_node {
	struct weft__copy_item item;
	struct weft__copy_node *parent; /* immutable; NULL: the root */
	struct weft__copy_node *all_next, *all_before; /* under lock */

	/* Descriptors, under lock: -1 if they are closed. */
	int from, to;
	unsigned users;
	struct weft__copy_node *idle_next, *idle_before; /* if no users */
	bool idle;
	bool staged; /* has the name `temp` */

	unsigned pending; /* under lock: CPT1 */
	unsigned refs;	  /* under lock: CPT2 */
	unsigned depth;	  /* immutable */

	/* Of the runner that has the node's place in the queue, then
	 * immutable. */
	bool opened, fresh, direct;
	struct stat status; /* of the original */
	dev_t to_dev;
	ino_t to_ino;
	mode_t to_mode; /* of the copy, if fresh */
	int64_t offset; /* of the next name to be read; 0: the first */
	char temp[WEFT__COPY_TEMP_BYTES];
	size_t name_bytes; /* with the 0 */
	char name[];
};

/* A name that waits for the copy of its file. */
struct weft__copy_waiting {
	struct weft__copy_waiting *next;
	struct weft__copy_node *node;
	size_t bytes; /* of all this */
	char name[];
};

/* The names of one file. */
struct weft__copy_group {
	struct weft__copy_group *next; /* under lock, as all else */
	dev_t dev;
	ino_t ino;
	uint64_t left; /* names that were not met yet */
	bool copied;
	unsigned users; /* runners that make a name, or the copy */
	struct weft__copy_node *node; /* where the copy is */
	char name[NAME_MAX + 1];
	struct weft__copy_waiting *waiting;
};

struct weft__copy_tree {
	/* Immutable. */
	struct weft_copy_opts opts;
	const struct weft_allocator *memory;
	const char *from_path, *to_path;
	struct weft__copy_node *root;
	int to_parent;
	unsigned open_max; /* nodes */

	struct weft__lock lock;
	struct weft__copy_item *queue; /* under lock, as all to the next gap */
	unsigned busy, idle;
	bool finished;
	int error;
	uint64_t bytes_left; /* of bytes_max */
	struct weft_copy_counts counts;
	struct weft__copy_node *all;
	struct weft__copy_node *idle_first, *idle_last; /* used last: first */
	unsigned open_count;
	struct weft__copy_group **groups; /* NULL: no links are kept */

	weft__atomic(bool) stops;  /* set under lock */
	weft__atomic(bool) clones; /* a hint */
	struct weft_notify more;   /* for idle runners */
	struct weft_mutex calling; /* one function of the options at a time */
	struct weft_lane lane;
};

/* ---- Nodes: copy_node.c ------------------------------------------------- */

/* A node below the parent, which is pending on it, or the root: NULL: there is
 * no memory. */
struct weft__copy_node *weft__copy_node_new(struct weft__copy_tree *tree,
					    struct weft__copy_node *parent,
					    const char *name);

/* Keeps the node's descriptors open, and opens them if they are not: 0 or an
 * error. */
int weft__copy_node_get(struct weft__copy_tree *tree,
			struct weft__copy_node *node);
void weft__copy_node_put(struct weft__copy_tree *tree,
			 struct weft__copy_node *node);

/* Opens both directories for the first time, and makes the second if need be.
 * The node's users then are the caller alone. */
int weft__copy_node_open(struct weft__copy_tree *tree,
			 struct weft__copy_node *node, uint64_t *number);

/* The same for the root, whose original is open. */
int weft__copy_root_open(struct weft__copy_tree *tree, uint64_t *number);

/* Its contents are complete: sets what it has beside them, and gives it its
 * name.  0 or an error. */
int weft__copy_node_end(struct weft__copy_tree *tree,
			struct weft__copy_node *node, char *buffer);

/* Gives it its name, even if its original is gone; for a call that ends
 * early. */
int weft__copy_node_publish(struct weft__copy_tree *tree,
			    struct weft__copy_node *node);

void weft__copy_node_ref(struct weft__copy_tree *tree,
			 struct weft__copy_node *node);
void weft__copy_node_unref(struct weft__copy_tree *tree,
			   struct weft__copy_node *node);

/* Closes the descriptors of all nodes in no use: how many. */
unsigned weft__copy_nodes_relieve(struct weft__copy_tree *tree);

/* At the end: closes and frees all. */
void weft__copy_nodes_free(struct weft__copy_tree *tree);

/* ---- Links: copy_links.c ------------------------------------------------ */

enum weft__copy_met {
	WEFT__COPY_FIRST,  /* the caller is to make the copy */
	WEFT__COPY_LATER,  /* the name waits for it */
	WEFT__COPY_LINKED, /* the caller is to link it to the copy */
};

/* A file with several names was met: WEFT__COPY_*, or an error. */
int weft__copy_links_meet(struct weft__copy_tree *tree,
			  struct weft__copy_node *node, const char *name,
			  const struct stat *status,
			  struct weft__copy_group **ret_group);

/* The copy was made, there. */
void weft__copy_links_made(struct weft__copy_tree *tree,
			   struct weft__copy_group *group,
			   struct weft__copy_node *node, const char *name);

/* The next name that waits for it; or NULL, and the caller has left. */
struct weft__copy_waiting *
weft__copy_links_next(struct weft__copy_tree *tree,
		      struct weft__copy_group *group);
void weft__copy_links_next_free(struct weft__copy_tree *tree,
				struct weft__copy_waiting *waiting);

/* The caller has linked its name. */
void weft__copy_links_leave(struct weft__copy_tree *tree,
			    struct weft__copy_group *group);

void weft__copy_links_free(struct weft__copy_tree *tree);

/* ---- Runners: copy_runner.c, copy_step.c -------------------------------- */

/* Copies until all is done, or the call is to stop.  In a task. */
int64_t weft__copy_runner_main(void *arg);

void weft__copy_tree_push(struct weft__copy_tree *tree,
			  struct weft__copy_item *item);

#endif

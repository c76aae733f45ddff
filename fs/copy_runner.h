/* SPDX-License-Identifier: MIT */
/*
 * Copy runner - the state of one of the tasks of weft_copy_tree(), and its
 * steps.  copy_tree.h has the model.
 */
#ifndef WEFT_FS_COPY_RUNNER_H
#define WEFT_FS_COPY_RUNNER_H

#include "fs/copy_tree.h"

enum weft__copy_step { WORKS, REPORTS, IDLES, LEAVES };

struct weft__copy_report {
	bool set;
	int error;
	struct weft__copy_node *node; /* has a reference */
	/* In the node, or "": the node itself.  The kernel lists no longer
	 * ones. */
	char name[PATH_MAX];
};

struct weft__copy_runner {
	struct weft__copy_tree *tree;
	struct weft__copy_one one;
	uint64_t number;
	bool is_idle;
	struct weft__copy_report report;
	struct weft_copy_counts counts; /* since the last turn's end */

	/* Names: of `node`, which is open and pending. */
	struct weft__copy_node *node;
	size_t names_bytes, names_at;

	/* The file that is being copied: a name in `place`. */
	bool copies;
	struct weft__copy_node *place;
	const char *name;

	struct weft__copy_group *group; /* of which this copies a name */
	bool group_copied;
	struct weft__copy_waiting *waiting; /* the name that waited */

	struct weft__copy_node *ending; /* is complete */

	char names[WEFT__COPY_NAMES_BYTES];
	char buffer[WEFT__COPY_BUFFER_BYTES];
};

/* The next step, on a thread of the pool. */
enum weft__copy_step weft__copy_runner_step(struct weft__copy_runner *runner);

/* Ends the call with that error, if it has none yet. */
void weft__copy_tree_stop(struct weft__copy_tree *tree, int error);
bool weft__copy_tree_stops(const struct weft__copy_tree *tree);

#endif

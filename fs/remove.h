/* SPDX-License-Identifier: MIT */
#ifndef WEFT_FS_REMOVE_H
#define WEFT_FS_REMOVE_H

#include "fs/tree.h"

/* A call of weft_remove_tree(). */
struct weft__removal {
	struct weft__tree tree;
	const struct weft_remove_opts *opts;
	/* The caller's name of the root, without slashes at its end. */
	int dir_fd;
	char *path;
	bool had_slash;
	struct weft_mutex reporting;

	/* Under the tree's lock. */
	struct weft_remove_counts counts;
	int error; /* the first; or 0 */
	bool stops;
};

/* Records of an error and a path each, one after another, to be reported. */
struct weft__remove_log {
	char *text;
	size_t bytes, max;
};

/* A task of the crew. */
struct weft__remover {
	struct weft__removal *removal;
	struct weft__tree_hand hand;
	struct weft__remove_log log;
	struct weft_remove_counts counts; /* of the running job */
	_Alignas(8) char records[8 << 10];
};

/* ---- Directories: remove_dir.c; in jobs ------------------------------- */

/* Removes what directories of the stack hold, and those directories that are
 * empty then, for some milliseconds.  0, or the error that stops the call. */
int64_t weft__remove_some(void *remover);

/* Opens the root, or removes it if it is no directory.  1: it is open;
 * otherwise the result of the call. */
int64_t weft__remove_root(void *remover);

/* ---- Reports: remove_log.c -------------------------------------------- */

/* Notes what has become of a file; name: in the directory, NULL for itself.
 * An error is counted, and stops the call if it is not to go on. */
void weft__remove_note(struct weft__remover *remover,
		       struct weft__tree_dir *dir, const char *name, int error);

/* Stops the call. */
void weft__remove_stop(struct weft__removal *removal, int error);

/* Reports what was noted; in a task.  0, or a negative result of a report. */
int weft__remove_report(struct weft__remover *remover);

#endif

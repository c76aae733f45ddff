/* SPDX-License-Identifier: MIT */
/*
 * Tree - the files of a list, and those below its folders, one after the other.
 * For threads that may wait for the disk, as those of weft_blocking() may.
 */
#ifndef COMMON_TREE_H
#define COMMON_TREE_H

#include <stdbool.h>

struct folder;

/* Zeroed but for what is public. */
struct tree {
	char **names; /* the list, which ends with NULL */
	bool recursive;
	struct folder *top;
};

/* The next file, or the folder that cannot be listed: *ret_path is the
 * caller's, *ret_error a negative errno or 0.  1, 0 at the end, or an error.
 * Symbolic links below a folder are left out. */
int tree_next(struct tree *tree, char **ret_path, int *ret_error);

void tree_end(struct tree *tree);

#endif

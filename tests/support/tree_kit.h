/* SPDX-License-Identifier: MIT */
/*
 * Trees of files for the tests of fs/: made in a directory of their own, and
 * listed and removed without weft.
 */
#ifndef WEFT_TESTS_SUPPORT_TREE_KIT_H
#define WEFT_TESTS_SUPPORT_TREE_KIT_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "runtime/base/lock.h"

/* Texts; any thread may add to it. */
struct tree_list {
	struct weft__lock lock;
	char **texts;
	size_t count, max;
};

void tree_list_add(struct tree_list *list, const char *text);
void tree_list_free(struct tree_list *list);
/* By bytes. */
void tree_list_sort(struct tree_list *list);
size_t tree_list_find(const struct tree_list *list, const char *text);
/* Fails unless both have the same texts, sorted. */
void tree_lists_compare(struct tree_list *got, struct tree_list *expected);
/* Fails unless both have the same texts in the same order. */
void tree_lists_compare_order(const struct tree_list *got,
			      const struct tree_list *expected);

/* A directory that no other test has. */
struct tree {
	char path[64];
	int fd;
};

void tree_open(struct tree *tree);
/* Removes what is left of it. */
void tree_close(struct tree *tree);

/* Opens a new directory "t" in a tree as a tree of its own, whose fd the caller
 * closes. */
void tree_below(const struct tree *tree, struct tree *ret_below);

/* Makes a file of a few bytes, or the directory with its ancestors. */
void tree_file(const struct tree *tree, const char *path);
void tree_dir(const struct tree *tree, const char *path);

/* Makes names of all kinds, all types of files that the process may make, links
 * to nothing and to each other, empty and nested directories, a path over
 * PATH_MAX. */
void tree_make_nasty(const struct tree *tree);

/* `levels` directories of one name, each in the one before. */
void tree_make_deep(const struct tree *tree, const char *name, int levels);

/* A tree of about so many files, by a seed. */
void tree_make_random(const struct tree *tree, unsigned seed, int files);

/* A line for a visit: the path, a tab, and the type's number. */
void tree_line(char *line, size_t bytes, const char *path, int type);

/* All files below, and the root as "": lines in the order of a sorted walk. */
void tree_list(int dir_fd, const char *path, struct tree_list *ret_list);

/* Removes what is in a directory. */
void tree_empty(int fd);

#endif

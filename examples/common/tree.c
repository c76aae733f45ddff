/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "tree.h"

int tree_next(struct tree *tree, char **ret_path, int *ret_error)
{
	bool is_folder;
	char *path;

	do {
		while (tree->top &&
		       tree->top->at == tree->top->names + tree->top->bytes)
			folder_leave(tree);
		if (!tree->top && !*tree->names)
			return 0;
		is_folder = tree->recursive;
		path = tree->top ? folder_next(tree->top, &is_folder) :
				   strdup(*tree->names++);
		if (!path)
			return -ENOMEM;
		*ret_error = is_folder ? folder_enter(tree, path) : 0;
	} while (is_folder && *ret_error == 0);
	/* A file of the list. */
	if (*ret_error == -ENOTDIR)
		*ret_error = 0;
	*ret_path = path;
	return 1;
}

void tree_end(struct tree *tree)
{
	while (tree->top)
		folder_leave(tree);
}

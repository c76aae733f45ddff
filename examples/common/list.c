/* SPDX-License-Identifier: MIT */
/* The files of trees, as one task of weft_walk() finds them, in order. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

struct root {
	struct files *files;
	const char *path; /* that was given, with a slash at its end */
	bool is_open;
};

static int visit(const struct weft_walk_entry *entry, void *arg)
{
	struct root *root = arg;
	char *path = NULL;

	root->is_open = true;
	if (entry->event == WEFT_WALK_ENTRY && entry->type != DT_REG)
		return 0;
	if (asprintf(&path, "%s%s", root->path, entry->path) < 0)
		return -ENOMEM;
	return files_add(root->files, path, NULL, entry->error);
}

/* The slash is for a link to a folder, which would not be followed without
 * one.  Sets *ret_error to why the root cannot be opened as a folder. */
static int tree_add(struct files *files, const char *name, int *ret_error)
{
	struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;
	struct root root = { .files = files };
	bool slash = name[strlen(name) - 1] == '/';
	char *path = NULL;
	int r;

	if (asprintf(&path, "%s%s", name, slash ? "" : "/") < 0)
		return -ENOMEM;
	root.path = path;
	opts.flags = WEFT_WALK_SORTED;
	r = weft_walk(AT_FDCWD, path, visit, &root, &opts);
	free(path);
	*ret_error = root.is_open ? 0 : r;
	return root.is_open ? r : 0;
}

int files_add_all(struct files *files, char **names, bool recursive)
{
	int r = 0;

	for (; r == 0 && *names; names++) {
		int error = -ENOTDIR;

		if (recursive && **names)
			r = tree_add(files, *names, &error);
		if (r < 0 || error == 0)
			continue;
		/* A file, or none. */
		r = files_add(files, strdup(*names), NULL,
			      error == -ENOTDIR ? 0 : error);
	}
	return r;
}

/* SPDX-License-Identifier: MIT */
/* A folder of tree.h: it is listed once, as a whole. */
#ifndef COMMON_FOLDER_H
#define COMMON_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "tree.h"

/* The names, each behind a byte that tells its type. */
struct folder {
	struct folder *above;
	char *path, *names, *at;
	size_t bytes;
};

/* Takes the path if it succeeds: 0 or a negative errno. */
int folder_enter(struct tree *tree, char *path);

void folder_leave(struct tree *tree);

/* The next path, from malloc(); NULL: there is no memory. */
char *folder_next(struct folder *folder, bool *ret_is_folder);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef HTTP_PATH_H
#define HTTP_PATH_H

#include "text.h"

/* Room for a path and, after it, the name of the index of a directory.
 * Escaped, which may triple it, the path still fits in the header of an
 * answer. */
#define PATH_BYTES 2048
#define PATH_INDEX "index.html"

/* Turns the path of a URL, "/a/%62/../c", into a path relative to the root:
 * "a/c".  The root itself is "./"; a path that ends in a slash means a
 * directory.  Returns 0, or the status to refuse the request with. */
int path_from_url(struct span raw, char path[PATH_BYTES]);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_PATH_H
#define HTTPD_PATH_H

#include "text.h"

/* Room for a path and, after it, the name of the index of a directory.
 * Escaped, which may triple it, the path still fits in the header of an
 * answer. */
#define PATH_BYTES 2048
#define PATH_INDEX "index.html"

/* Turns the target of a request, "/a/%62/../c?query", into a path relative to
 * the root: "a/c".  The root itself is "./"; a path that ends in a slash means
 * a directory.  Returns 0, or the status to refuse the request with. */
int path_from_target(struct span target, char path[PATH_BYTES]);

#endif

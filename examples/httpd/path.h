/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_PATH_H
#define HTTPD_PATH_H

#include "text.h"

/* Room for a path and, behind it, the name of a directory's index.  Escaped
 * again, threefold, it fits in an answer's header. */
#define PATH_BYTES 2048
#define PATH_INDEX "index.html"

/*
 * Turns the target of a request, "/a/%62/../c?query", into a path relative to
 * the root: "a/c".  The root itself is "./"; a path that ends in a slash is
 * meant as a directory.  Returns 0 or the status to refuse it with.
 */
int path_from_target(struct span target, char path[PATH_BYTES]);

#endif

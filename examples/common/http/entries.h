/* SPDX-License-Identifier: MIT */
#ifndef HTTP_ENTRIES_H
#define HTTP_ENTRIES_H

#include <dirent.h>
#include <stddef.h>

struct entries {
	struct dirent **at;
	size_t count, room;
};

/* Adds those whose names do not begin with a dot, sorted.  0, or an error; free
 * them in either case. */
int entries_read(int dir_fd, struct entries *entries);

void entries_free(struct entries *entries);

#endif

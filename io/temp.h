/* SPDX-License-Identifier: MIT */
/*
 * Temp - a file that has no name yet.  The steps wait, so jobs of the pool make
 * them (io/pooled.h).
 *
 *	fd        the file
 *	dir_fd    the directory of the name, if it has one; a replacement's
 *	          always
 *	name      "", or a temporary name that is to be removed
 */
#ifndef WEFT_IO_TEMP_H
#define WEFT_IO_TEMP_H

#include <sys/types.h>

enum { WEFT__TEMP_NAME_BYTES = 32 };

struct weft__temp {
	int fd;
	int dir_fd;
	char name[WEFT__TEMP_NAME_BYTES];
};

/* Makes the file in a directory that is open.  0, or -errno. */
int weft__temp_make(struct weft__temp *temp, int dir_fd, mode_t mode);

/* Gives it a temporary name in dir_fd, unless it has one. */
int weft__temp_name(struct weft__temp *temp);

/* Removes its temporary name. */
void weft__temp_unname(struct weft__temp *temp);

#endif

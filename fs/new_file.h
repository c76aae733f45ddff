/* SPDX-License-Identifier: MIT */
/*
 * New file - a file that appears under its name whole, or not at all.
 *
 * Each call is one job of the blocking pool.
 */
#ifndef WEFT_FS_NEW_FILE_H
#define WEFT_FS_NEW_FILE_H

#include <stdbool.h>
#include <sys/types.h>

struct weft__new_file {
	const char *path; /* the caller's, until the file is closed */
	const char *name; /* its last part */
	mode_t mode;
	int fd;	    /* to write to */
	int dir_fd; /* the folder */
	bool named; /* there is a file of the name `temporary` */
	char temporary[24];
};

/* Opens a file without a name in the path's folder, or one with a temporary
 * name.  0 or -errno: nothing is left then. */
int weft__new_file_open(struct weft__new_file *file, const char *path,
			mode_t mode);

/* Writes the file back and gives it its name, in place of what had it.  To be
 * closed afterwards, whatever is returned. */
int weft__new_file_commit(struct weft__new_file *file);

/* Closes the file; without a commit it is gone.  Ignores interruptions. */
void weft__new_file_close(struct weft__new_file *file);

#endif

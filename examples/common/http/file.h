/* SPDX-License-Identifier: MIT */
/*
 * An open file or directory below the root, and its HTTP properties.
 */
#ifndef HTTP_FILE_H
#define HTTP_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "asked.h"

struct file {
	int fd; /* -1: none */
	struct stat stat;
	char etag[56]; /* changes with the size and time of change */
};

/* Opens path, relative to the directory root_fd and never outside it.
 * Suspends.  Returns 0, or a negative errno with file->fd -1. */
int file_open(int root_fd, const char *path, struct file *file);

/* Does nothing if fd of the file is -1. */
void file_close(struct file *file);

/* Whether the file is in the state that the client asks for: if not, the answer
 * is 412, so that a download that is resumed has no parts of two states. */
bool file_expected(const struct file *file, const struct asked *asked);

/* Whether the client already has the file in this state: the answer is 304. */
bool file_unchanged(const struct file *file, const struct asked *asked);

/* Whether the Range of a request refers to the file in this state. */
bool file_range_applies(const struct file *file, const struct asked *asked);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A file or directory beneath the root, opened, and what HTTP says about it.
 */
#ifndef HTTPD_FILE_H
#define HTTPD_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "request.h"

struct file {
	int fd; /* -1: none */
	struct stat stat;
	char etag[56]; /* changes with size and time of change */
};

/* Opens @path, relative to the directory @root_fd and never outside of it.
 * Returns 0, or a negative errno with file->fd -1. */
int file_open(int root_fd, const char *path, struct file *file);

/* Of no use for a file of which fd is -1. */
void file_close(struct file *file);

/* Whether the client says it has the file as it is: the answer is 304. */
bool file_unchanged(const struct file *file, const struct request *request);

/* Whether a Range in the request is about the file as it is. */
bool file_range_applies(const struct file *file, const struct request *request);

#endif

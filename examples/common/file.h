/* SPDX-License-Identifier: MIT */
/* One file of files.h, in the steps of a pipeline. */
#ifndef COMMON_FILE_H
#define COMMON_FILE_H

#include <stdint.h>

#include "files.h"

/* For one file after the other; freed by the caller. */
struct room {
	char *data;
	size_t bytes;
};

/* By a thread that may wait.  Leaves a large one, and marks it. */
void file_read_small(struct files *files, struct file *file, struct room *room);

/* By a task.  0, or -ECANCELED. */
int64_t file_read_large(struct files *files, struct file *file);

/* Prints what was found, or complains.  last: there may be none for a while. */
int file_deliver(struct files *files, struct file *file, bool last);

#endif

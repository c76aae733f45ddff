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

/* By a task.  0, -ECANCELED, or why nothing can be printed. */
int64_t file_read_large(struct files *files, struct file *file);

/* Prints what was found, or complains.  last: there may be none for a while. */
int file_deliver(struct files *files, struct file *file, bool last);

/* Prints the text so far. */
int text_deliver(struct files *files, struct file *file);

/* Is more text kept, of all files, than should be? */
bool text_is_much(void);

/* If so, waits until all files before are done, prints them, and the text so
 * far.  By the task that reads the file.  0 or an error. */
int file_print_early(struct files *files, struct file *file);

/* A large file is done, or, if it is NULL, a batch. */
int turn_end(struct files *files, struct file *file);

#endif

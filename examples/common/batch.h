/* SPDX-License-Identifier: MIT */
/* Files of files.h that are listed and read together. */
#ifndef COMMON_BATCH_H
#define COMMON_BATCH_H

#include <stdint.h>

#include "files.h"

enum { BATCH_FILES_MAX = 128 };

struct batch {
	uint64_t number;  /* in the pipeline */
	unsigned printed; /* of its files, by the one whose turn it is */
	unsigned count;
	struct file list[BATCH_FILES_MAX];
};

/* A task: sends batches of all files, and closes the channel.  arg is the
 * address of a struct files *. */
int64_t batches_list(void *arg);

/* NULL: nothing. */
void batch_free(struct batch *batch);

#endif

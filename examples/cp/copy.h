/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_CP_COPY_H
#define EXAMPLES_CP_COPY_H

#include <stdint.h>

#include "../common/progress.h"
#include "options.h"

struct copy {
	const struct options *options;
	const char *to; /* of the tree that is being copied */
	struct progress progress;
	int errors;
};

/* A task, which gets the address of a struct copy: copies all, and counts what
 * was not copied. */
int64_t copy_all(void *arg);

#endif

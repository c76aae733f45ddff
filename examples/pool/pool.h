/* SPDX-License-Identifier: MIT */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include <weft/weft.h>

struct job {
	uint64_t words;
	int error; /* of the file, if negative */
	char path[4000];
};

extern struct weft_chan jobs, results;

/* The tasks.  Names of standard input, one a line, to jobs; closes them. */
int64_t read_names(void *arg);
/* Jobs to results, until jobs are closed.  There are several. */
int64_t work(void *arg);
/* Results to standard output, until they are closed.  @arg is the address of
 * the count of files that could not be read. */
int64_t print_results(void *arg);

#endif

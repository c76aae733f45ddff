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

/* The tasks.  read_names() sends the names from standard input, one on each
 * line, to jobs, and then closes jobs. */
int64_t read_names(void *arg);
/* Turns jobs into results until jobs are closed.  Several of these tasks
 * run. */
int64_t work(void *arg);
/* Prints results on standard output until they are closed.  arg is the address
 * of a pointer to the number of files that could not be read. */
int64_t print_results(void *arg);

#endif

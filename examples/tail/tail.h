/* SPDX-License-Identifier: MIT */
#ifndef TAIL_TAIL_H
#define TAIL_TAIL_H

#include <weft/weft.h>

struct options {
	unsigned long lines;
	int follow; /* 'f', by descriptor; 'F', by name; 0: not */
	int headers, count;
	char **names;
};

/* Of the program; several tasks set it. */
extern _Atomic(int) status;

/* Writes all of it, under a header if another file wrote before. */
int print(const struct options *o, const char *name, const void *data,
	  size_t bytes);

/* Returns the error. */
int complain(const char *name, const char *what, int error);

/* Prints the last lines: returns where the file ended then, or an error. */
int64_t print_last(const struct options *o, const char *name);

/* A task; its argument is an array of the options and a name. */
int64_t follow(void *arg);

#endif

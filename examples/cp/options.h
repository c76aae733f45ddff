/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_CP_OPTIONS_H
#define EXAMPLES_CP_OPTIONS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTIONS_PATH_BYTES = 4096 };

struct options {
	bool recursive, verbose, no_clobber;
	uint32_t flags; /* WEFT_COPY_* */
	unsigned jobs;	/* 0: weft chooses */
	char **from;
	int from_count;
	const char *to;
	bool into; /* `to` is a directory to put the copies into */
	sigset_t signals;
};

/* Prints what is wrong, or the usage: 0 or -1. */
int options_parse(struct options *options, int argc, char **argv);

/* The name of the copy of `from`: 0, or -1: it is too long. */
int options_target(const struct options *options, const char *from, char *to,
		   size_t bytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Copy one - one file, link or node, from a name in a directory to a name in
 * another, in steps on the thread that calls.
 *
 *	open			finds out what it is
 *	make or link		makes the copy, or begins to
 *	step, step ...		writes the contents of a file, and ends it
 *	drop			gives back what is left, after each outcome
 *
 * Invariants
 *   CPO1  Under its own name the copy is whole, unless `direct`: then its
 *         directory has a temporary name.
 *   CPO2  A drop before the end leaves nothing.
 */
#ifndef WEFT_FS_COPY_ONE_H
#define WEFT_FS_COPY_ONE_H

#include "fs/copy_bytes.h"

enum {
	WEFT__COPY_TEMP_BYTES = 32,
	WEFT__COPY_TRIES = 100, /* for a name that is free */
};

struct weft__copy_one {
	/* The request. */
	int from_dir, to_dir;
	const char *from_name, *to_name;
	uint32_t flags; /* WEFT_COPY_* */
	bool direct;
	bool clones; /* the file system may share blocks; cleared if not */
	uint64_t bytes_max;
	uint64_t *number; /* of the next temporary name */
	char *buffer;	  /* WEFT__COPY_BUFFER_BYTES */
	int link_dir;	  /* set by weft__copy_one_link() */
	const char *link_name;

	/* The outcome. */
	struct stat status; /* of the original */
	int from, to;	    /* descriptors, or -1 */
	bool made; /* `temp`, or `to_name` if direct, is to be removed */
	char temp[WEFT__COPY_TEMP_BYTES];
	struct weft__copy_bytes bytes;
};

/* A name for a file that is not whole; not the same again for 2^64 calls. */
void weft__copy_temp_name(char temp[WEFT__COPY_TEMP_BYTES], uint64_t *number);

/* A number to begin with. */
uint64_t weft__copy_temp_number(void);

/* Gives a file or directory its name.  -EEXIST: that is taken. */
int weft__copy_publish(int dir, const char *temp, const char *name,
		       uint32_t flags);

/* `type` is DT_REG if it is known to be a file, else 0.  0 or an error. */
int weft__copy_one_open(struct weft__copy_one *one, int type);

/* 1: steps follow; 0: done; or an error. */
int weft__copy_one_make(struct weft__copy_one *one);
int weft__copy_one_step(struct weft__copy_one *one);

/* Makes it a further name of a copy that exists: 0 or an error. */
int weft__copy_one_link(struct weft__copy_one *one, int dir, const char *name);

void weft__copy_one_drop(struct weft__copy_one *one);

#endif

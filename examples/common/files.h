/* SPDX-License-Identifier: MIT */
/*
 * Files - reads many files, some at a time, and prints what is found in each,
 * in their order.
 */
#ifndef COMMON_FILES_H
#define COMMON_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct file {
	char *path;
	char *note; /* for the tool; freed */
	int error;  /* a negative errno, or 0 */
	bool large;
	bool enough;	       /* set by the tool: the rest need not be read */
	bool found;	       /* for the tool */
	bool failed;	       /* set by the tool: counts as a failure */
	void *state;	       /* for the tool */
	const char *complaint; /* set by the tool: printed behind the text */
	char *text;	       /* what is printed, from malloc() */
	size_t text_bytes, text_room;
};

struct files {
	const char *tool; /* its name, for complaints */
	/* The next file: 1, 0 at the end, or an error.  In a thread that may
	 * wait. */
	int (*next)(struct files *files, struct file *file);
	/* Looks at data of a file, and returns how much of it is done with, and
	 * may be changed; the rest comes again, with more behind it.  At the
	 * end, when `last`, it is all done with.  In any thread. */
	size_t (*feed)(struct files *files, struct file *file, char *data,
		       size_t bytes, bool last);
	/* After the last one, or an error. */
	void (*end)(struct files *files, struct file *file);
	void *arg;
	unsigned failures, found; /* files, so far */
	char out[64 << 10];	  /* to be written */
	size_t out_bytes;
};

/* In a task.  Suspends.  0 or an error; that of a file is only printed. */
int files_run(struct files *files);

/* Appends to what is printed of a file; in feed() and end(). */
void file_print(struct file *file, const char *data, size_t bytes);

#endif

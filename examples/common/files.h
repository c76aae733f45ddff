/* SPDX-License-Identifier: MIT */
/*
 * Files - reads many files, some at a time, and prints what is found in each,
 * in their order.
 */
#ifndef COMMON_FILES_H
#define COMMON_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/weft.h>

struct batch;

struct file {
	struct batch *batch;
	char *path;
	char *note;    /* for the tool; freed */
	int error;     /* a negative errno, or 0 */
	int unprinted; /* why its text cannot be printed, or 0 */
	bool large;
	bool enough;	       /* set by the tool: the rest need not be read */
	bool found;	       /* for the tool */
	bool failed;	       /* set by the tool: counts as a failure */
	bool done;	       /* a large one has been read */
	void *state;	       /* for the tool */
	const char *complaint; /* set by the tool: printed behind the text */
	char *text;	       /* what is printed, from malloc() */
	size_t text_bytes, text_room;
};

struct files {
	const char *tool; /* its name, for complaints */
	/* Adds all files, in a task of its own: 0 or an error. */
	int (*list)(struct files *files);
	/* Looks at data of a file, and returns how much of it is done with, and
	 * may be changed; the rest comes again, with more behind it.  At the
	 * end, when `last`, it is all done with.  In any thread. */
	size_t (*feed)(struct files *files, struct file *file, char *data,
		       size_t bytes, bool last);
	/* After the last one, or an error. */
	void (*end)(struct files *files, struct file *file);
	void *arg;
	unsigned printed, failures, found; /* files, so far */
	struct weft_chan batches;	   /* from list() to the pipeline */
	struct batch *filling;		   /* by list() */
	struct weft_mutex turn;		   /* of the next two, and of done */
	struct weft_cond turned;
	uint64_t batches_printed;
	uint64_t batches_taken; /* by the pipeline */
	char out[64 << 10];	/* to be written */
	size_t out_bytes;
};

/* In a task.  Suspends.  0 or an error; that of a file is only printed. */
int files_run(struct files *files);

/* Adds a file, or one that cannot be read: path and note are from malloc(), and
 * taken in any case; NULL for path: there was no memory.  In list().  Suspends
 * while many files wait.  0 or an error. */
int files_add(struct files *files, char *path, char *note, int error);

/* The same for each of a list, which ends with NULL; with all files below it
 * if it is a folder and `recursive`.  They come in the order of their names;
 * links below a folder are left out. */
int files_add_all(struct files *files, char **names, bool recursive);

/* Appends to what is printed of a file; in feed() and end(). */
void file_print(struct file *file, const char *data, size_t bytes);

#endif

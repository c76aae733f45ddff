/* SPDX-License-Identifier: MIT */
/*
 * Copy bytes - the contents of a file, in pieces, on the thread that calls.
 *
 * The ways, each until the kernel refuses it: the blocks are shared; the kernel
 * copies; they go through a buffer.  The last one finds out the real error.
 */
#ifndef WEFT_FS_COPY_BYTES_H
#define WEFT_FS_COPY_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum {
	/* Files up to this size go through the buffer in one step. */
	WEFT__COPY_BUFFER_BYTES = 128 << 10,
};

struct weft__copy_bytes {
	int from, to;	    /* the caller's */
	uint64_t size;	    /* to be copied; UINT64_MAX: to the end */
	uint64_t at;	    /* where the next piece begins */
	uint64_t until;	    /* the end of the data that begins before `at` */
	uint64_t bytes_max; /* of all pieces */
	uint64_t done;	    /* bytes copied */
	bool sparse;	    /* there may be holes before `size` */
	bool ranged;	    /* the kernel may copy */
	bool ended;
	char *buffer; /* the caller's; WEFT__COPY_BUFFER_BYTES */
};

/* `to` is empty. */
void weft__copy_bytes_begin(struct weft__copy_bytes *bytes, int from, int to,
			    const struct stat *status, uint64_t bytes_max,
			    char *buffer);

/* Shares the blocks of all: 1, or 0: that is not possible. */
int weft__copy_bytes_clone(struct weft__copy_bytes *bytes);

/* A piece, of a few milliseconds: 1; 0 at the end; or an error. */
int weft__copy_bytes_step(struct weft__copy_bytes *bytes);

#endif

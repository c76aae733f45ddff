/* SPDX-License-Identifier: MIT */
/*
 * Out - text on its way to a descriptor, in whole lines as far as they fit: to
 * a pipe that others write to, too, none is torn.
 */
#ifndef WEFT_RUNTIME_DUMP_OUT_H
#define WEFT_RUNTIME_DUMP_OUT_H

#include <stddef.h>

enum { WEFT__OUT_BYTES = 4096 }; /* PIPE_BUF */

struct weft__out {
	int fd;
	int error; /* the first; nothing is written after it */
	size_t used;
	char text[WEFT__OUT_BYTES];
};

/* A line or a part of one; of more than WEFT__OUT_BYTES the rest is lost. */
__attribute__((format(printf, 2, 3))) void
weft__out_print(struct weft__out *out, const char *format, ...);

/* What is left.  0 or the error. */
int weft__out_end(struct weft__out *out);

#endif

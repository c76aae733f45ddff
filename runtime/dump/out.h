/* SPDX-License-Identifier: MIT */
/*
 * Out - text that is gathered first, and written when nobody waits for the one
 * who writes: a descriptor may take its time.
 */
#ifndef WEFT_RUNTIME_DUMP_OUT_H
#define WEFT_RUNTIME_DUMP_OUT_H

#include <stddef.h>

struct weft__out {
	char *text;
	size_t used, room;
	int error; /* -ENOMEM: nothing was added since */
};

__attribute__((format(printf, 2, 3))) void
weft__out_print(struct weft__out *out, const char *format, ...);

/* In whole lines as far as they fit into what a pipe takes at once: there none
 * is torn, whoever else writes to it.  0 or -errno. */
int weft__out_write(const struct weft__out *out, int fd);

void weft__out_fini(struct weft__out *out);

#endif

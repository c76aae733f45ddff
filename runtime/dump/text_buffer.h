/* SPDX-License-Identifier: MIT */
/*
 * Out - text that is gathered first, and written when nobody waits for the one
 * who writes: a descriptor may take its time.
 */
#ifndef WEFT_RUNTIME_DUMP_TEXT_BUFFER_H
#define WEFT_RUNTIME_DUMP_TEXT_BUFFER_H

#include <stddef.h>

enum { WEFT__TEXT_BUFFER_PATIENT = -1 };

struct weft__text_buffer {
	char *text;
	size_t used, room;
	int error; /* -ENOMEM: nothing was added since */
};

__attribute__((format(printf, 2, 3))) void
weft__text_buffer_print(struct weft__text_buffer *out, const char *format, ...);

/* In whole lines as far as they fit into what a pipe takes at once: there none
 * is torn, whoever else writes to it.  0 or -errno.  A descriptor that does not
 * block is given so much time in all, and -ETIMEDOUT says that it was too
 * little; WEFT__TEXT_BUFFER_PATIENT has any time. */
int weft__text_buffer_write(const struct weft__text_buffer *out, int fd,
			    int max_ms);

void weft__text_buffer_fini(struct weft__text_buffer *out);

#endif

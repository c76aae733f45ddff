/* SPDX-License-Identifier: MIT */
/*
 * Text buffer - text that is gathered first and written later, when no task
 * waits for the writing thread: a descriptor may be slow.
 */
#ifndef WEFT_RUNTIME_DUMP_TEXT_BUFFER_H
#define WEFT_RUNTIME_DUMP_TEXT_BUFFER_H

#include <stddef.h>

#include <weft/allocator.h>

enum { WEFT__TEXT_BUFFER_PATIENT = -1 };

struct weft__text_buffer {
	/* The runtime's, a copy, since the runtime may end while the text is
	 * written; or all zero: malloc(). */
	struct weft_allocator allocator;
	char *text;
	size_t used, room;
	int error; /* -ENOMEM: the text is cut off there */
};

__attribute__((format(printf, 2, 3))) void
weft__text_buffer_print(struct weft__text_buffer *out, const char *format, ...);

/* Writes the text: in whole lines as far as they fit into one atomic write to a
 * pipe, so that lines of several writers do not mix.  0 or -errno.  For a
 * non-blocking descriptor `max_ms` limits the total time, and -ETIMEDOUT
 * reports its end; WEFT__TEXT_BUFFER_PATIENT is no limit. */
int weft__text_buffer_write(const struct weft__text_buffer *out, int fd,
			    int max_ms);

void weft__text_buffer_fini(struct weft__text_buffer *out);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_RELAY_H
#define EXAMPLES_RELAY_H

#include <weft/weft.h>

/* Passes on what both send until both have ended; the end of one direction is
 * passed on as a half-close, and an error of either ends both.  Returns 0 or
 * that error. */
int64_t relay(struct weft_stream *a, struct weft_stream *b);

/* The same between two sockets, which it leaves in O_NONBLOCK mode. */
int64_t relay_sockets(int a, int b);

#endif

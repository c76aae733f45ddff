/* SPDX-License-Identifier: MIT */
#ifndef PUBSUB_PEER_H
#define PUBSUB_PEER_H

#include <weft/weft.h>

/* A connection that several tasks write to; zero except for its descriptor. */
struct peer {
	int fd;
	struct weft_mutex writing;
};

/* Writes one whole line, even if other tasks write, too.  Suspends.  Returns 0
 * or an error. */
__attribute__((format(printf, 2, 3))) int peer_say(struct peer *peer,
						   const char *format, ...);

#endif

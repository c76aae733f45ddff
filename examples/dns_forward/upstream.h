/* SPDX-License-Identifier: MIT */
#ifndef DNS_FORWARD_UPSTREAM_H
#define DNS_FORWARD_UPSTREAM_H

#include <stddef.h>
#include <stdint.h>
#include <weft/weft.h>

struct upstream {
	const char *address;
	weft_nsec patience_ns; /* for an answer, before it is asked again */
};

/* Ask the server, over UDP three times at most.  The answer has the query's ID.
 * end: its message_query_end().  Suspend.  Return its bytes, or a negative
 * errno.  That of TCP is on the heap. */
ssize_t upstream_ask(const struct upstream *upstream, const uint8_t *query,
		     size_t bytes, size_t end, uint8_t *answer);
ssize_t upstream_ask_tcp(const struct upstream *upstream, const uint8_t *query,
			 size_t bytes, size_t end, uint8_t **ret_answer);

/* Read and write a message over TCP, behind its length.  Suspend.  Return its
 * bytes, 0 at the end, or a negative errno. */
ssize_t message_read(int fd, uint8_t **ret_message, size_t bytes_max);
int message_write(int fd, const uint8_t *message, size_t bytes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The socket of a client, and its buffers.
 */
#ifndef HTTPD_CONNECTION_H
#define HTTPD_CONNECTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../common/http/fields.h"
#include "../common/http/secure.h"

#define HEADER_BYTES_MAX 8192u /* of a request; a longer one gets a 431 */
#define OUTPUT_BYTES 8192u     /* a shorter answer is sent in one call */

/* Allocated on the heap, where a page that is never used costs nothing.  On the
 * stack of a task the compiler would touch each page of such a large frame. */
struct connection {
	int fd;
	struct secure *secure; /* NULL: without TLS */
	size_t begin;	       /* of the input that is not used yet */
	size_t end;
	struct dates dates;
	char input[HEADER_BYTES_MAX];
	char output[OUTPUT_BYTES];
};

/* Takes over fd, for TLS if there is a context.  Suspends.  Returns NULL, with
 * fd closed, if there is no memory or the handshake fails. */
struct connection *connection_new(struct secure_context *context, int fd);
void connection_free(struct connection *connection);

/* Reads more input after the input that is there, which may move.  Suspends.
 * Returns the number of bytes read, 0 at the end of the stream, -EMSGSIZE if
 * the buffer is full, or another negative errno. */
ssize_t connection_fill(struct connection *connection);

/* Send all bytes.  Suspend; if the client takes nothing for a minute, they
 * return -ETIMEDOUT.  flags may be MSG_MORE.  Return 0 or a negative errno. */
int connection_send(struct connection *connection, const void *bytes,
		    size_t count, int flags);
int connection_send_file(struct connection *connection, int file_fd,
			 off_t offset, size_t count);

/* Tells the client that nothing more comes, and waits a short time for it to
 * close.  If the socket were closed with unread input, the kernel would send a
 * reset, which can destroy an answer that the client has not read yet. */
void connection_finish(struct connection *connection);

#endif

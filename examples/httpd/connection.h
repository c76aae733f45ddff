/* SPDX-License-Identifier: MIT */
/*
 * A client's socket and its buffers.
 */
#ifndef HTTPD_CONNECTION_H
#define HTTPD_CONNECTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "date.h"

#define HEADER_BYTES_MAX 8192u /* of a request: more is answered by 431 */
#define OUTPUT_BYTES 8192u     /* an answer that fits is sent in one go */

/* On the heap, where a page that is never used costs nothing.  On the task's
 * stack the compiler would touch each page of a frame this large. */
struct connection {
	int fd;
	size_t begin; /* of the input not yet used */
	size_t end;
	struct date now;      /* for the Date header */
	struct date modified; /* for Last-Modified */
	char input[HEADER_BYTES_MAX];
	char output[OUTPUT_BYTES];
};

/* Takes over @fd.  NULL, with fd closed, if there is no memory. */
struct connection *connection_new(int fd);
void connection_free(struct connection *connection);

/* Reads more input behind what is there, which may move.  Suspends.  Returns
 * the bytes read, 0 at the end of the stream, -EMSGSIZE if the buffer is full,
 * or a negative errno. */
ssize_t connection_fill(struct connection *connection);

/* Send it all.  Suspend; a client that takes nothing for a minute gives
 * -ETIMEDOUT.  @flags may be MSG_MORE.  Return 0 or a negative errno. */
int connection_send(struct connection *connection, const void *bytes,
		    size_t count, int flags);
int connection_send_file(struct connection *connection, int file_fd,
			 off_t offset, size_t count);

/* Tells the client that nothing more comes, and waits a little for it to close.
 * To close with input unread would make the kernel send a reset, and that can
 * destroy an answer the client has not read yet. */
void connection_finish(struct connection *connection);

#endif

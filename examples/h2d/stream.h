/* SPDX-License-Identifier: MIT */
/*
 * A stream: a request and its answer.
 *
 * Until it has a task, it is in the connection's list of those that wait, and
 * goes when the session closes it.  Then it belongs to its task, which ends
 * when the session has closed it, or when the connection ends.
 */
#ifndef H2D_STREAM_H
#define H2D_STREAM_H

#include "../common/http/answer.h"
#include "connection.h"

/* Of the fields of a request, as SETTINGS_MAX_HEADER_LIST_SIZE counts them; a
 * request with more gets a 431. */
#define HEADER_BYTES_MAX 8192u
#define BUFFER_BYTES (32u * 1024u)

/* On the heap, where a page that is never used costs nothing.  Under the lock
 * of the connection; but the task alone uses the answer, and the buffer while
 * no piece is in it. */
struct stream {
	struct stream *next; /* that waits */
	struct connection *connection;
	struct weft_notify wake; /* closed, or the piece has been taken */
	int32_t id;
	bool complete; /* the request is */
	bool has_task;
	bool closed; /* by the session */
	bool owed;   /* its task works on what the session sends next */

	size_t header_bytes;
	size_t kept_bytes; /* of the fields, in the buffer */
	struct span method;
	struct asked asked; /* as the method, in the buffer */

	struct answer answer;
	const char *piece; /* of the content, for the session to take */
	size_t piece_bytes;
	uint64_t left; /* of the file, behind the piece */
	weft_nsec progress_ns; /* when a piece came, or was taken from */
	off_t offset;
	char buffer[BUFFER_BYTES]; /* the fields, then pieces of the file */
};

/* These are called under the lock.  stream_new() returns NULL if there is no
 * memory. */
struct stream *stream_new(struct connection *connection, int32_t id);
void stream_add_field(struct stream *stream, struct span name,
		      struct span value);
void stream_close(struct stream *stream);
void stream_reset(struct stream *stream, uint32_t error);
void stream_owe(struct stream *stream, bool owed);

/* Whether a request is complete, and has no task; and such a stream, now out of
 * the list, or NULL. */
bool stream_waits(struct connection *connection);
struct stream *stream_take(struct connection *connection);

/* Answers the request; arg is the address of a pointer to the stream. */
int64_t stream_run(void *arg);

/* Gives the session the fields of the answer, and begins its content. */
void stream_respond(struct stream *stream);

/* Ends a stream that was taken. */
void stream_abandon(struct stream *stream);
void stream_free(struct stream *stream);

#endif

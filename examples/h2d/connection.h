/* SPDX-License-Identifier: MIT */
/*
 * A connection: a session of libnghttp2, which does no I/O.  It is given bytes
 * that were received, and calls back with what they mean; and it is asked for
 * bytes to send, and calls back for the content of streams.
 *
 *	the client
 *	  |    ^
 *	  v    |
 *	receive.c  send.c	one task each: read and write, with no lock
 *	  |    ^
 *	  v    |
 *	incoming.c outgoing.c	callbacks of the session, under the lock
 *	  |    ^
 *	  v    |
 *	stream.c  content.c	a task for each request: opens and reads files
 *
 * Nothing suspends in a callback, or under the lock: callbacks move bytes
 * between buffers, set fields, and notify a task.  So the lock is one of
 * threads, held for microseconds, and whatever waits (a slow client, a slow
 * disk) waits in a task of its own outside of it:
 *
 *  - A client that does not read holds up send.c.  Then the session gets no
 *    room for output, streams are not asked for more, and when too many answers
 *    to frames are queued, receive.c waits, too.
 *  - A file that is slow to read holds up its stream: the session defers it,
 *    and sends those of others.
 *  - receive.c waits for send.c, and never the other way round; nor does a
 *    stream wait for another.  So there is no deadlock.
 *
 * Memory is bounded: a connection has one buffer of output and at most
 * streams_max streams, a stream has one piece of its file, or a listing of at
 * most 256 KiB and, while that is made, the names in the directory.
 *
 * A connection ends if for idle_ns no request came and no answer went on.  That
 * limit covers clients that are idle, that send a header byte by byte, and that
 * do not read (less than an output in that time).  A stream is reset if for
 * idle_ns the session had no use for its content: a client that gets on with
 * others, and keeps the window of this one at 0, would have its file open for
 * ever.
 *
 * A client may close its half of the connection when it has sent its requests:
 * it still gets the answers.  Its windows grow no more.  So the connection ends
 * when no task of a stream works on what is to be sent next, even if a window
 * holds up the rest of an answer.
 */
#ifndef H2D_CONNECTION_H
#define H2D_CONNECTION_H

#include <pthread.h>

#include "allowance.h"
#include "server.h"

#define OUTPUT_BYTES (64u * 1024u)

struct stream;

struct connection {
	struct server *server;
	struct weft_stream *stream; /* to the client */
	struct weft_notify more;    /* the session may have more to send */
	struct weft_notify sent;    /* the output was sent */
	size_t output_bytes;	    /* only for send.c, as the output */

	pthread_mutex_t lock; /* guards the rest, and all streams */
	nghttp2_session *session;
	struct stream *waiting; /* those without a task, the oldest first */
	struct allowance resets;
	struct allowance others;
	bool flooded; /* one of both was exceeded */
	struct allowance provoked; /* resets by the session */
	struct allowance refusals;
	bool draining;
	bool half_closed;      /* the client sends no more */
	unsigned owed;	       /* streams of which `owed` is true */
	weft_nsec progress_ns; /* when a request came or an answer went on */

	uint8_t output[OUTPUT_BYTES];
};

/* Does not suspend.  Returns NULL if there is no memory. */
struct connection *connection_new(struct server *server,
				  struct weft_stream *stream);
void connection_free(struct connection *connection);

/* The tasks that receive and send; arg is the address of a pointer to the
 * connection.  They end with a failure: receive.c when the client is gone, or
 * idle, or no client of HTTP/2; send.c when all is sent, and the session is
 * over or owes nothing to a client that sends no more. */
int64_t receive_run(void *arg);
int64_t send_run(void *arg);

/* Tells the client to begin no further streams.  The session is over when those
 * that it has are done.  Does not suspend. */
void connection_drain(struct connection *connection);

/* When the connection is idle for too long, if nothing happens until then. */
weft_nsec connection_deadline(struct connection *connection);

static inline void connection_lock(struct connection *connection)
{
	pthread_mutex_lock(&connection->lock);
}

static inline void connection_unlock(struct connection *connection)
{
	pthread_mutex_unlock(&connection->lock);
}

#endif

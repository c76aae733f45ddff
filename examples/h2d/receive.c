/* SPDX-License-Identifier: MIT */
/*
 * Receives: gives the session what the client sends, then starts the tasks of
 * the requests that are complete.
 *
 * The scope has a limit, so that a client that resets its streams, whose tasks
 * need a moment to end, has no more tasks than other clients.  Room comes
 * without any further input: as many streams as the limit allows may be open,
 * and the one to be started is among them, so one task at least has no open
 * stream, and is about to end.
 */
#include <errno.h>

#include "connection.h"
#include "stream.h"

/* A step, after which the frames to send are counted. */
#define STEP_BYTES 4096
/* Frames to send, but for the content of streams. */
#define QUEUED_MAX 256
/* An error that no call returns here: the connection is idle for too long. */
#define IDLE (-ETIME)
/* For the end of a connection to be sent. */
#define LAST_WORD_NS WEFT_SEC(2)

static size_t queued(struct connection *connection)
{
	size_t count;

	connection_lock(connection);
	count = nghttp2_session_get_outbound_queue_size(connection->session);
	connection_unlock(connection);
	return count;
}

static ssize_t wait_for_input(struct connection *connection,
			      const void **ret_data)
{
	while (queued(connection) > QUEUED_MAX) {
		int r = weft_notify_wait(&connection->sent);

		if (r < 0)
			return r;
	}
	return weft_stream_peek(connection->stream, ret_data);
}

/* The same, until the connection is idle for too long: IDLE. */
static ssize_t wait_until_idle(struct connection *connection,
			       const void **ret_data)
{
	ssize_t n = 0;
	bool late;

	do {
		late = false;
		WEFT_WITHIN_UNTIL (connection_deadline(connection)) {
			n = wait_for_input(connection, ret_data);
			late = n == -ETIMEDOUT && weft_deadline_passed();
		}
		if (late && weft_now() >= connection_deadline(connection))
			return IDLE;
	} while (late);
	return n;
}

static int parse(struct connection *connection, const void *data, size_t bytes)
{
	ssize_t n;

	connection_lock(connection);
	n = nghttp2_session_mem_recv(connection->session, data, bytes);
	/* After this it ignores input, and is over when the GOAWAY is sent. */
	if (n >= 0 && connection->flooded)
		nghttp2_session_terminate_session(connection->session,
						  NGHTTP2_ENHANCE_YOUR_CALM);
	connection_unlock(connection);
	weft_notify_one(&connection->more);
	return n < 0 ? -EPROTO : 0;
}

/* Returns 0, -ENODATA: the client sends no more, IDLE, or another error. */
static int receive(struct connection *connection)
{
	const void *data;
	ssize_t n = wait_until_idle(connection, &data);
	int r;

	if (n <= 0)
		return n == 0 ? -ENODATA : (int)n;
	if (n > STEP_BYTES)
		n = STEP_BYTES;
	r = parse(connection, data, (size_t)n);
	weft_stream_skip(connection->stream, (size_t)n);
	return r;
}

/* Runs the task of a stream, or, if there can be none, refuses that stream. */
static void start_stream(struct stream *stream, struct weft_scope *streams)
{
	struct connection *connection = stream->connection;

	if (WEFT_GO(streams, stream_run, stream) == 0)
		return;
	connection_lock(connection);
	if (!stream->closed)
		stream_reset(stream, NGHTTP2_REFUSED_STREAM);
	connection_unlock(connection);
	weft_notify_one(&connection->more);
	stream_abandon(stream);
}

static int start_streams(struct connection *connection,
			 struct weft_scope *streams)
{
	struct stream *stream;
	int r = 0;

	while (stream_waits(connection)) {
		r = weft_scope_wait_room(streams);
		if (r < 0)
			break;
		stream = stream_take(connection);
		if (!stream)
			break;
		start_stream(stream, streams);
	}
	return r;
}

/* Lets the streams go on.  send.c ends this task when nothing is owed; else it
 * returns IDLE. */
static int wait_for_answers(struct connection *connection)
{
	weft_nsec deadline_ns;
	int r = 0;

	connection_lock(connection);
	connection->half_closed = true;
	connection_unlock(connection);
	weft_notify_one(&connection->more);
	while (r == 0) {
		deadline_ns = connection_deadline(connection);
		if (weft_now() >= deadline_ns)
			return IDLE;
		r = weft_sleep_until(deadline_ns);
	}
	return r;
}

static void say_goodbye(struct connection *connection)
{
	connection_lock(connection);
	nghttp2_session_terminate_session(connection->session,
					  NGHTTP2_NO_ERROR);
	connection_unlock(connection);
	weft_notify_one(&connection->more);
	/* send.c ends this task before, if it can. */
	weft_sleep(LAST_WORD_NS);
}

int64_t receive_run(void *arg)
{
	struct connection *connection = *(struct connection **)arg;
	int r = 0;

	WEFT_SUPERVISE (streams) {
		r = weft_scope_limit(streams, connection->server->streams_max);
		while (r == 0) {
			r = receive(connection);
			if (r == 0)
				r = start_streams(connection, streams);
		}
		if (r == -ENODATA)
			r = wait_for_answers(connection);
		if (r == IDLE)
			say_goodbye(connection);
		weft_scope_cancel(streams);
	}
	return r;
}

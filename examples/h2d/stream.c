/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "content.h"

struct stream *stream_new(struct connection *connection, int32_t id)
{
	struct stream **last = &connection->waiting;
	struct stream *stream = malloc(sizeof(*stream));

	if (!stream)
		return NULL;
	memset(stream, 0, offsetof(struct stream, buffer));
	answer_init(&stream->answer);
	stream->connection = connection;
	stream->id = id;
	while (*last)
		last = &(*last)->next;
	*last = stream;
	return stream;
}

void stream_free(struct stream *stream)
{
	answer_fini(&stream->answer);
	free(stream);
}

static struct stream *leave_list(struct stream *stream)
{
	struct stream **at = &stream->connection->waiting;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	return stream;
}

void stream_owe(struct stream *stream, bool owed)
{
	if (owed && !stream->owed)
		stream->connection->owed++;
	if (!owed && stream->owed)
		stream->connection->owed--;
	stream->owed = owed;
}

void stream_close(struct stream *stream)
{
	stream_owe(stream, false);
	if (!stream->has_task) {
		stream_free(leave_list(stream));
		return;
	}
	stream->closed = true;
	weft_notify_one(&stream->wake);
}

void stream_reset(struct stream *stream, uint32_t error)
{
	nghttp2_submit_rst_stream(stream->connection->session,
				  NGHTTP2_FLAG_NONE, stream->id, error);
}

static struct stream *first_complete(struct connection *connection)
{
	struct stream *stream = connection->waiting;

	while (stream && !stream->complete)
		stream = stream->next;
	return stream;
}

bool stream_waits(struct connection *connection)
{
	bool waits;

	connection_lock(connection);
	waits = first_complete(connection) != NULL;
	connection_unlock(connection);
	return waits;
}

struct stream *stream_take(struct connection *connection)
{
	struct stream *stream;

	connection_lock(connection);
	stream = first_complete(connection);
	if (stream)
		leave_list(stream)->has_task = true;
	connection_unlock(connection);
	return stream;
}

void stream_abandon(struct stream *stream)
{
	connection_lock(stream->connection);
	stream_owe(stream, false);
	if (!stream->closed)
		nghttp2_session_set_stream_user_data(
			stream->connection->session, stream->id, NULL);
	connection_unlock(stream->connection);
	stream_free(stream);
}

/* A request that is too long may lack its fields. */
static void print_line(const struct stream *stream)
{
	const struct span *method = &stream->method;
	const struct span *path = &stream->asked.path;

	fprintf(stderr, "%d %.*s %.*s\n", stream->answer.status,
		(int)method->bytes, method->at ? method->at : "",
		(int)path->bytes, path->at ? path->at : "");
}

int64_t stream_run(void *arg)
{
	struct stream *stream = *(struct stream **)arg;
	const struct server *server = stream->connection->server;

	if (stream->header_bytes > HEADER_BYTES_MAX)
		stream->answer.status = STATUS_HEADER_TOO_LARGE;
	else
		answer_find(&stream->answer, server->site.root_fd,
			    &stream->asked);
	if (server->site.opts.verbose)
		print_line(stream);
	stream_respond(stream);
	content_feed(stream);
	stream_abandon(stream);
	return 0;
}

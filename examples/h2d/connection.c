/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "connection.h"
#include "stream.h"

static bool session_begin(struct connection *connection)
{
	const struct server *server = connection->server;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
		  server->streams_max },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_BYTES_MAX },
	};

	if (nghttp2_session_server_new2(&connection->session, server->callbacks,
					connection, server->option) < 0)
		return false;
	if (nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE,
				    settings, 2) == 0)
		return true;
	nghttp2_session_del(connection->session);
	return false;
}

struct connection *connection_new(struct server *server,
				  struct weft_stream *stream)
{
	/* Not zeroed: pages of output that are not used cost nothing. */
	struct connection *connection = malloc(sizeof(*connection));

	if (!connection)
		return NULL;
	connection->server = server;
	connection->stream = stream;
	connection->more = (struct weft_notify)WEFT_NOTIFY_INIT;
	connection->sent = (struct weft_notify)WEFT_NOTIFY_INIT;
	connection->output_bytes = 0;
	pthread_mutex_init(&connection->lock, NULL);
	connection->waiting = NULL;
	connection->resets = (struct allowance){ 0 };
	connection->others = (struct allowance){ 0 };
	connection->flooded = false;
	connection->provoked = (struct allowance){ 0 };
	connection->refusals = (struct allowance){ 0 };
	connection->draining = false;
	connection->half_closed = false;
	connection->owed = 0;
	connection->progress_ns = weft_now();
	if (session_begin(connection))
		return connection;
	free(connection);
	return NULL;
}

void connection_free(struct connection *connection)
{
	struct stream *stream;

	while ((stream = connection->waiting)) {
		connection->waiting = stream->next;
		stream_free(stream);
	}
	nghttp2_session_del(connection->session);
	pthread_mutex_destroy(&connection->lock);
	free(connection);
}

/* The rest is in on_frame_send() and on_frame_recv(). */
void connection_drain(struct connection *connection)
{
	connection_lock(connection);
	connection->draining = true;
	nghttp2_submit_shutdown_notice(connection->session);
	connection_unlock(connection);
	weft_notify_one(&connection->more);
}

weft_nsec connection_deadline(struct connection *connection)
{
	weft_nsec deadline_ns;

	connection_lock(connection);
	deadline_ns = connection->progress_ns + connection->server->idle_ns;
	connection_unlock(connection);
	return deadline_ns;
}

/* SPDX-License-Identifier: MIT */
/*
 * A connection from its handshake to its end.  One task receives and one sends,
 * so that neither waits for the other; a third waits for the end of the server.
 */
#include "connection.h"
#include "session.h"

#define FINISH_NS WEFT_SEC(2)

/* The socket of a client. */
struct client {
	int fd;
	struct secure *secure; /* NULL: without TLS */
	struct weft_stream plain;
	struct weft_stream *stream; /* the one or the other */
};

/* Takes over fd.  Returns false, with fd closed, if the handshake fails. */
static bool client_open(struct client *client, const struct session *session)
{
	struct secure_context *context = session->server->site.secure;

	client->fd = session->fd;
	client->secure = NULL;
	client->stream = &client->plain;
	if (!context) {
		weft_stream_init(&client->plain, session->fd);
		return true;
	}
	client->secure = secure_accept(context, session->fd);
	if (client->secure)
		client->stream = secure_stream(client->secure);
	return client->secure != NULL;
}

/* Waits a short time for the client to close.  If the socket were closed with
 * unread input, the kernel would send a reset, which can destroy answers that
 * the client has not read yet. */
static void client_finish(struct client *client)
{
	const void *data;
	ssize_t n;
	int r;

	WEFT_WITHIN (FINISH_NS) {
		r = client->secure ? secure_shutdown(client->secure) :
				     weft_shutdown(client->fd, SHUT_WR);
		while (r == 0 &&
		       (n = weft_stream_peek(client->stream, &data)) > 0)
			weft_stream_skip(client->stream, (size_t)n);
	}
}

static void client_close(struct client *client)
{
	WEFT_WITHIN (FINISH_NS) {
		if (client->secure)
			secure_close(client->secure);
		else
			weft_stream_close(client->stream);
	}
}

static int64_t drain_run(void *arg)
{
	struct connection *connection = *(struct connection **)arg;

	if (weft_event_wait(&connection->server->stopping) == 0)
		connection_drain(connection);
	return 0;
}

/* A task that fails ends the others. */
static void serve(struct connection *connection)
{
	WEFT_SCOPE (tasks, NULL) {
		if (WEFT_GO(tasks, receive_run, connection) < 0 ||
		    WEFT_GO(tasks, send_run, connection) < 0 ||
		    WEFT_GO(tasks, drain_run, connection) < 0)
			weft_scope_cancel(tasks);
	}
}

int64_t session_run(void *arg)
{
	const struct session *session = arg;
	struct server *server = session->server;
	struct connection *connection;
	struct client client;

	if (client_open(&client, session)) {
		connection = connection_new(server, client.stream);
		if (connection) {
			serve(connection);
			connection_free(connection);
			client_finish(&client);
		}
		client_close(&client);
	}
	weft_wait_group_done(&server->open);
	return 0;
}

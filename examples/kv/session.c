/* SPDX-License-Identifier: MIT */
/*
 * A connection from its first request to its last.
 */
#include <errno.h>
#include <stdlib.h>

#include "command.h"
#include "input.h"
#include "session.h"

struct session {
	struct weft_stream stream;
	struct client client;
	struct input input;
	struct request request; /* large, and mostly unused: not on the stack */
};

static struct session *session_new(const struct connection *connection)
{
	struct session *session = malloc(sizeof(*session));

	if (!session)
		return NULL;
	weft_stream_init(&session->stream, connection->fd);
	session->input = (struct input){ .stream = &session->stream };
	clients_join(&connection->server->clients, &session->client,
		     connection->fd);
	return session;
}

/* Executes requests until the client sends no more.  Returns 0; 1 if the server
 * wants no more; or an error. */
static int execute_all(struct session *session, struct table *table)
{
	struct call call = {
		.table = table,
		.stream = &session->stream,
		.request = &session->request,
	};
	int r;

	while ((r = input_next(&session->input, &session->request)) > 0) {
		r = call_run(&call);
		if (r < 0 || call.quits)
			return r < 0 ? r : 1;
	}
	if (r != -EPROTO)
		return r;
	r = answer_error(&session->stream, "ERR %s", session->request.error);
	return r < 0 ? r : 1;
}

/* If the socket were closed with unread input, the kernel would send a reset,
 * which can destroy an answer that the client has not read yet. */
static void finish(struct weft_stream *stream, weft_nsec grace_ns)
{
	const void *data;
	ssize_t n = 1;

	WEFT_WITHIN (grace_ns) {
		if (weft_stream_flush(stream) < 0 ||
		    weft_shutdown(weft_stream_fd(stream), SHUT_WR) < 0)
			return;
		while ((n = weft_stream_peek(stream, &data)) > 0)
			weft_stream_skip(stream, (size_t)n);
	}
}

int64_t session_run(void *arg)
{
	const struct connection *connection = arg;
	struct server *server = connection->server;
	struct session *session = session_new(connection);
	int r = -ENOMEM;

	if (session) {
		r = execute_all(session, server->table);
		if (r > 0)
			finish(&session->stream, server->grace_ns);
		clients_leave(&server->clients, &session->client);
		weft_stream_close(&session->stream);
		input_fini(&session->input);
		free(session);
	} else {
		weft_close(connection->fd);
	}
	weft_wait_group_done(&server->clients.open);
	return r < 0 ? r : 0;
}

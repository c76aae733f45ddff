/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "connection.h"

#define FINISH_NS WEFT_SEC(2)

/* A peer that does not read holds up the end of TLS no longer than this. */
static void close_both(struct secure *secure, int fd)
{
	if (!secure)
		weft_close(fd);
	else
		WEFT_WITHIN(FINISH_NS)
			secure_close(secure);
}

struct connection *connection_new(struct secure_context *context, int fd)
{
	struct secure *secure = NULL;
	struct connection *connection;

	/* With this, weft_sendfile() sends without a copy. */
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (context) {
		secure = secure_accept(context, fd);
		if (!secure)
			return NULL;
	}
	connection = malloc(sizeof(*connection));
	if (!connection) {
		close_both(secure, fd);
		return NULL;
	}
	connection->fd = fd;
	connection->secure = secure;
	connection->begin = 0;
	connection->end = 0;
	connection->dates = (struct dates){ 0 };
	return connection;
}

void connection_free(struct connection *connection)
{
	close_both(connection->secure, connection->fd);
	free(connection);
}

static ssize_t receive_some(struct connection *connection, void *to,
			    size_t bytes)
{
	return connection->secure ?
		       weft_stream_read(secure_stream(connection->secure), to,
					bytes) :
		       weft_recv(connection->fd, to, bytes, 0);
}

ssize_t connection_fill(struct connection *connection)
{
	size_t unused = connection->end - connection->begin;
	ssize_t n;

	if (connection->begin > 0)
		memmove(connection->input,
			connection->input + connection->begin, unused);
	connection->begin = 0;
	connection->end = unused;
	if (unused == sizeof(connection->input))
		return -EMSGSIZE;
	n = receive_some(connection, connection->input + unused,
			 sizeof(connection->input) - unused);
	if (n > 0)
		connection->end += (size_t)n;
	return n;
}

void connection_finish(struct connection *connection)
{
	int r;

	WEFT_WITHIN(FINISH_NS) {
		r = connection->secure ?
			    secure_shutdown(connection->secure) :
			    weft_shutdown(connection->fd, SHUT_WR);
		while (r == 0 && receive_some(connection, connection->input,
					      sizeof(connection->input)) > 0)
			;
	}
}

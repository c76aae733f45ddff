/* SPDX-License-Identifier: MIT */
/* Queries over TCP, one after the other, in a task for each connection. */
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "server.h"
#include "upstream.h"

enum { CONNECTIONS_MAX = 1000 };
#define IDLE_NS WEFT_SEC(10)

struct connection {
	struct server *server;
	int fd;
};

/* The answer to a query, which may be the query's memory.  Returns its bytes,
 * or 0 if it is no query. */
static size_t answer(struct server *server, uint8_t **message, size_t bytes)
{
	size_t end = message_query_end(*message, bytes), kept;
	uint8_t room[ANSWER_BYTES_MAX], *received;
	ssize_t n;

	if (end == 0)
		return 0;
	memcpy(room, *message, bytes);
	kept = cache_get(server->cache, room, bytes, end);
	if (kept > 0) {
		uint8_t *copy = realloc(*message, kept);

		if (!copy)
			return 0;
		*message = copy;
		memcpy(copy, room, kept);
		return kept;
	}
	n = upstream_ask_tcp(&server->upstream, *message, bytes, end,
			     &received);
	if (n <= 0)
		return message_fail(*message, end);
	free(*message);
	*message = received;
	return (size_t)n;
}

/* One query; false at the end. */
static bool exchange(const struct connection *connection)
{
	uint8_t *message;
	ssize_t n = 0;
	size_t bytes;
	int r = -1;

	WEFT_WITHIN(IDLE_NS)
		n = message_read(connection->fd, &message, QUERY_BYTES_MAX);
	if (n <= 0)
		return false;
	bytes = answer(connection->server, &message, (size_t)n);
	if (bytes > 0)
		WEFT_WITHIN(IDLE_NS)
			r = message_write(connection->fd, message, bytes);
	free(message);
	return r == 0;
}

static int64_t serve_one(void *arg)
{
	const struct connection *connection = arg;

	while (exchange(connection))
		;
	return weft_close(connection->fd);
}

int64_t serve_connections(void *arg)
{
	struct server *server = *(struct server **)arg;
	struct connection connection = { server, -1 };
	int r = 0;

	WEFT_SUPERVISE(tasks) {
		r = weft_scope_limit(tasks, CONNECTIONS_MAX);
		while (r >= 0 && (r = weft_scope_wait_room(tasks)) == 0) {
			r = weft_accept(server->listener, NULL);
			if (r < 0)
				break;
			connection.fd = r;
			if (WEFT_GO(tasks, serve_one, connection) < 0)
				weft_close(connection.fd);
		}
	}
	return r;
}

/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <errno.h>

struct connection {
	int fd;
	struct server *server;
};

static int64_t echo(void *arg)
{
	const struct connection *connection = arg;
	int r = weft_copy(connection->fd, connection->fd, UINT64_MAX, NULL,
			  NULL);

	weft_close(connection->fd);
	weft_wait_group_done(&connection->server->open);
	return r;
}

/* A connection that is taken is served, even if this task is to end now. */
static void serve(struct server *server, int fd)
{
	struct connection connection = { fd, server };
	int r = 0;

	weft_wait_group_add(&server->open, 1);
	WEFT_SHIELD
		r = WEFT_GO(server->connections, echo, connection);
	if (r < 0) {
		weft_wait_group_done(&server->open);
		weft_close(fd);
	}
}

static int64_t take_connections(void *arg)
{
	struct server *server = *(struct server **)arg;
	int fd;

	if (server->old >= 0 && handover_ready(server->old) < 0)
		return -EPIPE;
	while ((fd = weft_accept(server->sockets[CLIENTS], NULL)) >= 0)
		serve(server, fd);
	return fd;
}

/* Returns a failure, -EINTR, which ends the task's group, once another process
 * takes the connections.  One that fails before changes nothing. */
static int64_t wait_for_successor(void *arg)
{
	struct server *server = *(struct server **)arg;
	int next;

	while ((next = weft_accept(server->sockets[SUCCESSORS], NULL)) >= 0)
		if (handover_give(next, server->sockets) == 0)
			return -EINTR;
	return next;
}

int server_run(struct server *server)
{
	int64_t result = 0;
	int r = 0;

	WEFT_SUPERVISE (connections) {
		server->connections = connections;
		WEFT_SCOPE (taking, &result) {
			r = WEFT_GO(taking, take_connections, server);
			if (r == 0)
				r = WEFT_GO(taking, wait_for_successor,
					    server);
			if (r < 0)
				weft_scope_cancel(taking);
		}
		/* The next process has both, too: what waits in their queues
		 * stays there. */
		weft_close(server->sockets[CLIENTS]);
		weft_close(server->sockets[SUCCESSORS]);
		WEFT_WITHIN (server->grace_ns)
			if (weft_wait_group_wait(&server->open) < 0)
				weft_scope_cancel(connections);
	}
	if (r == 0 && result != -EINTR)
		r = (int)result;
	return r;
}

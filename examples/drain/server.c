/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "server.h"

struct connection {
	int fd;
	struct server *server;
};

static int64_t echo(void *arg)
{
	const struct connection *connection = arg;
	char buf[4096];
	ssize_t n;

	while ((n = weft_read(connection->fd, buf, sizeof(buf))) > 0)
		if (weft_write_all(connection->fd, buf, (size_t)n, NULL) < 0)
			break;
	weft_close(connection->fd);
	weft_wait_group_done(&connection->server->open);
	return n < 0 ? n : 0;
}

static int64_t take_connections(void *arg)
{
	struct connection connection = { -1, *(struct server **)arg };
	struct server *server = connection.server;

	while ((connection.fd = weft_accept(server->listener, NULL)) >= 0) {
		weft_wait_group_add(&server->open, 1);
		if (WEFT_GO(server->connections, echo, connection) < 0) {
			weft_wait_group_done(&server->open);
			weft_close(connection.fd);
		}
	}
	return connection.fd;
}

/* Returns the signal as a failure, -EINTR, which ends the task's group. */
static int64_t wait_for_signal(void *arg)
{
	int number, r = weft_signal_wait(*(int *)arg, &number);

	return r < 0 ? r : -EINTR;
}

int64_t server_run(void *arg)
{
	struct server *server = arg;
	int64_t result = 0;
	int r = 0;

	WEFT_SUPERVISE (connections) {
		server->connections = connections;
		WEFT_SCOPE (taking, &result) {
			r = WEFT_GO(taking, take_connections, server);
			if (r == 0)
				r = WEFT_GO(taking, wait_for_signal,
					    server->signal_fd);
			if (r < 0)
				weft_scope_cancel(taking);
		}
		result = r < 0 ? r : result;
		weft_close(server->listener);
		WEFT_WITHIN (server->grace_ns)
			r = weft_wait_group_wait(&server->open);
		if (r < 0)
			weft_scope_cancel(connections);
	}
	weft_close(server->signal_fd);
	return result == -EINTR ? 0 : result;
}

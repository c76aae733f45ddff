/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "../common/serving.h"
#include "server.h"
#include "session.h"

#define SWEEP_NS WEFT_MS(100)

enum { CLIENTS_MAX = 10000 }; /* further ones wait until one ends */

static int64_t take_connections(void *arg)
{
	struct connection connection = { -1, *(struct server **)arg };
	struct server *server = connection.server;
	int r;

	while ((r = weft_scope_wait_room(server->sessions)) == 0 &&
	       (r = weft_accept(server->listener, NULL)) >= 0) {
		connection.fd = r;
		weft_wait_group_add(&server->clients.open, 1);
		if (WEFT_GO(server->sessions, session_run, connection) < 0) {
			weft_wait_group_done(&server->clients.open);
			weft_close(connection.fd);
		}
	}
	return r;
}

/* Keys that are not asked for any more have to go as well. */
static int64_t drop_expired(void *arg)
{
	struct table *table = *(struct table **)arg;
	int r;

	while ((r = weft_sleep(SWEEP_NS)) == 0 && (r = table_sweep(table)) == 0)
		;
	return r;
}

/* Returns -EINTR, or why it could not go on. */
static int64_t serve(struct server *server)
{
	int64_t result = 0;
	int r = 0;

	WEFT_SCOPE (tasks, &result)
		if ((r = WEFT_GO(tasks, take_connections, server)) < 0 ||
		    (r = WEFT_GO(tasks, drop_expired, server->table)) < 0 ||
		    (r = WEFT_GO(tasks, serving_wait_for_signal,
				 server->signal_fd)) < 0)
			weft_scope_fail(tasks, r);
	return result;
}

int64_t server_run(void *arg)
{
	struct server *server = arg;
	int64_t result = 0;
	int r = 0;

	WEFT_SUPERVISE (sessions) {
		server->sessions = sessions;
		result = weft_scope_limit(sessions, CLIENTS_MAX);
		if (result == 0)
			result = serve(server);
		weft_close(server->listener);
		clients_end(&server->clients);
		WEFT_WITHIN (server->grace_ns)
			r = weft_wait_group_wait(&server->clients.open);
		if (r < 0)
			weft_scope_cancel(sessions);
	}
	weft_close(server->signal_fd);
	return result == -EINTR ? 0 : result;
}

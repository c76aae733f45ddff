/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "../common/serving.h"
#include "check.h"
#include "server.h"
#include "session.h"

static int64_t take_connections(void *arg)
{
	struct session session = { -1, *(struct server **)arg };
	struct server *server = session.server;

	while ((session.fd = weft_accept(server->listener, NULL)) >= 0) {
		weft_wait_group_add(&server->open, 1);
		if (WEFT_GO(server->sessions, session_run, session) < 0) {
			weft_wait_group_done(&server->open);
			weft_close(session.fd);
		}
	}
	return session.fd;
}

static int start_checks(struct weft_scope *tasks, struct server *server)
{
	struct check check = { server, server->pool.backends };
	int r = 0;

	for (unsigned i = 0; i < server->pool.count && r == 0; i++) {
		r = WEFT_GO(tasks, check_run, check);
		check.backend++;
	}
	return r;
}

/* Returns -EINTR, or why it could not go on. */
static int64_t serve(struct server *server)
{
	int64_t result = 0;
	int r;

	WEFT_SCOPE (tasks, &result)
		if ((r = start_checks(tasks, server)) < 0 ||
		    (r = WEFT_GO(tasks, take_connections, server)) < 0 ||
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
		result = serve(server);
		weft_close(server->listener);
		WEFT_WITHIN (server->grace_ns)
			r = weft_wait_group_wait(&server->open);
		if (r < 0)
			weft_scope_cancel(sessions);
	}
	weft_close(server->signal_fd);
	return result == -EINTR ? 0 : result;
}

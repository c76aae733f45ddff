/* SPDX-License-Identifier: MIT */
/*
 * Accepts connections, at the limit only when an old one has ended.  After
 * SIGTERM or SIGINT each connection has until the end of the grace to finish
 * its streams; examples/drain/ shows this alone.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "../common/serving.h"
#include "server.h"
#include "session.h"

/* Bytes that wait in the kernel to be sent go before all others, and a write
 * waits until many of them are gone.  Connections inherit the option. */
#define UNSENT_BYTES (128 * 1024)

static int64_t take_connections(void *arg)
{
	struct session session = { .server = *(struct server **)arg };
	struct server *server = session.server;
	int r;

	while ((r = weft_scope_wait_room(server->connections)) == 0) {
		r = weft_accept(server->site.listener, NULL);
		if (r < 0)
			break;
		session.fd = r;
		weft_wait_group_add(&server->open, 1);
		if (WEFT_GO(server->connections, session_run, session) < 0) {
			weft_wait_group_done(&server->open);
			weft_close(session.fd);
		}
	}
	return r;
}

/* Until the listener fails, or the signal comes: -EINTR. */
static int64_t accept_until_signal(struct server *server)
{
	int64_t result = 0;
	int r;

	WEFT_SCOPE (taking, &result) {
		r = WEFT_GO(taking, take_connections, server);
		if (r == 0)
			r = WEFT_GO(taking, serving_wait_for_signal,
				    server->signal_fd);
		if (r < 0)
			weft_scope_fail(taking, r);
	}
	return result;
}

int64_t server_run(void *arg)
{
	struct server *server = arg;
	const int unsent = UNSENT_BYTES;
	int64_t result = 0;
	int r = 0;

	setsockopt(server->site.listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT,
		   &unsent, sizeof(unsent));
	WEFT_SUPERVISE (connections) {
		server->connections = connections;
		result = weft_scope_limit(connections,
					  server->site.opts.connections_max);
		if (result == 0)
			result = accept_until_signal(server);
		weft_close(server->site.listener);
		server->site.listener = -1;
		weft_event_set(&server->stopping);
		WEFT_WITHIN (server->grace_ns)
			r = weft_wait_group_wait(&server->open);
		if (r < 0)
			weft_scope_cancel(connections);
	}
	weft_close(server->signal_fd);
	return result == -EINTR ? 0 : result;
}

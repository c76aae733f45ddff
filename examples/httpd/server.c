/* SPDX-License-Identifier: MIT */
/*
 * Accepts connections.  At the limit of connections it stops: new ones wait in
 * the kernel's backlog until an old one ends.  That needs no memory, and
 * clients do not notice a short peak, while a refusal would be an error to
 * them.
 */
#include "server.h"
#include "session.h"

int64_t server_run(void *arg)
{
	const struct server *server = arg;
	struct session session = { .server = server };
	int r = 0;

	WEFT_SUPERVISE(sessions) {
		r = weft_scope_limit(sessions,
				     server->site.opts.connections_max);
		while (r >= 0 && (r = weft_scope_wait_room(sessions)) == 0) {
			r = weft_accept(server->site.listener, NULL);
			if (r < 0)
				break;
			session.fd = r;
			if (WEFT_GO(sessions, session_run, session) < 0)
				weft_close(session.fd);
		}
	}
	return r;
}

/* SPDX-License-Identifier: MIT */
/*
 * Accepting.  At the limit of connections it stops: newcomers wait in the
 * kernel's backlog until one of the old ones ends.  That needs no memory, and a
 * short peak is not noticed, where a refusal would be an error at the client.
 */
#include <errno.h>

#include "server.h"
#include "session.h"

#define FULL_RETRY_NS WEFT_MS(10)

/* Suspends while the server is full.  False if it is to end. */
static bool wait_for_room(const struct server *server,
			  const struct weft_scope *sessions)
{
	while (weft_scope_count(sessions) >= server->connections_max)
		if (weft_sleep(FULL_RETRY_NS) < 0)
			return false;
	return true;
}

int64_t server_run(void *arg)
{
	const struct server *server = arg;
	struct session session = { .server = server };

	session.fd = -ECANCELED;
	WEFT_SUPERVISE(sessions) {
		while (wait_for_room(server, sessions)) {
			session.fd = weft_accept(server->listener, NULL);
			if (session.fd < 0)
				break;
			if (WEFT_GO(sessions, session_run, session) < 0)
				weft_close(session.fd);
		}
	}
	return session.fd;
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "../common/relay.h"
#include "check.h"
#include "session.h"

/* Connects to one backend after the other, until one is there: a client does
 * not notice that others are not.  Returns a descriptor, and the backend, which
 * is to be given back; or an error. */
static int connect_to_any(struct server *server, struct backend **ret_backend)
{
	struct backend *backend;
	uint64_t tried = 0;
	int r = -EHOSTUNREACH;

	while (r != -ECANCELED &&
	       (backend = pool_take(&server->pool, &tried))) {
		r = check_connect(server, backend);
		if (r >= 0) {
			*ret_backend = backend;
			break;
		}
		pool_give(&server->pool, backend);
	}
	return r;
}

int64_t session_run(void *arg)
{
	const struct session *session = arg;
	struct server *server = session->server;
	struct backend *backend;
	int64_t result = connect_to_any(server, &backend);

	if (result >= 0) {
		int upstream = (int)result;

		result = relay_sockets(session->fd, upstream);
		pool_give(&server->pool, backend);
		weft_close(upstream);
	}
	weft_close(session->fd);
	weft_wait_group_done(&server->open);
	return result;
}

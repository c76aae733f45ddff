/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "check.h"

int check_connect(struct server *server, struct backend *backend)
{
	int r = -ETIMEDOUT;

	WEFT_WITHIN (server->connect_ns)
		r = weft_socket_connect(&backend->address, NULL);
	if (r != -ECANCELED)
		pool_report(&server->pool, backend, r);
	return r;
}

int64_t check_run(void *arg)
{
	const struct check *check = arg;
	int r;

	do {
		r = check_connect(check->server, check->backend);
		if (r >= 0)
			weft_close(r);
	} while (weft_sleep(check->server->check_ns) == 0);
	return 0;
}

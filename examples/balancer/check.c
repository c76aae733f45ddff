/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "check.h"

/* Says nothing of the backend: this process or host is short of something. */
static bool is_of_this_host(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS ||
	       r == -EADDRNOTAVAIL;
}

int check_connect(struct server *server, struct backend *backend)
{
	int r = -ETIMEDOUT;

	WEFT_WITHIN (server->connect_ns)
		r = weft_socket_connect(&backend->address, NULL);
	if (r != -ECANCELED && !is_of_this_host(r))
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

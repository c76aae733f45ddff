/* SPDX-License-Identifier: MIT */
#ifndef KV_SESSION_H
#define KV_SESSION_H

#include "server.h"

struct connection {
	int fd;
	struct server *server;
};

/* The task of a connection: executes its requests, and closes it.  arg is a
 * struct connection, which was counted as open. */
int64_t session_run(void *arg);

#endif

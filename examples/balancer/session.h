/* SPDX-License-Identifier: MIT */
#ifndef BALANCER_SESSION_H
#define BALANCER_SESSION_H

#include "server.h"

struct session {
	int fd;
	struct server *server;
};

/* The task of a client, which closes its connection.  arg is a struct session,
 * which was counted as open. */
int64_t session_run(void *arg);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_SESSION_H
#define HTTPD_SESSION_H

#include "server.h"

/* What the task of a connection is given: its socket, which it closes. */
struct session {
	int fd;
	const struct server *server;
};

/* The task of a connection.  @arg is a struct session. */
int64_t session_run(void *arg);

#endif

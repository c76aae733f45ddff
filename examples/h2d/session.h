/* SPDX-License-Identifier: MIT */
#ifndef H2D_SESSION_H
#define H2D_SESSION_H

#include "server.h"

/* The argument of the task of a connection, which closes the socket. */
struct session {
	int fd;
	struct server *server;
};

/* The task of a connection.  arg is a struct session. */
int64_t session_run(void *arg);

#endif

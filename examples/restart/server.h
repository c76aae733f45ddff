/* SPDX-License-Identifier: MIT */
#ifndef RESTART_SERVER_H
#define RESTART_SERVER_H

#include "handover.h"

struct server {
	int sockets[SOCKETS];
	int old; /* connection to the process before this one, or -1 */
	weft_nsec grace_ns; /* for connections of the one that is replaced */
	struct weft_scope *connections;
	struct weft_wait_group open;
};

/* Echoes on all connections until another process has taken the sockets, and
 * lets those that are open finish.  Closes the sockets. */
int server_run(struct server *server);

#endif

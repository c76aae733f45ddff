/* SPDX-License-Identifier: MIT */
#ifndef SOCKS5_SESSION_H
#define SOCKS5_SESSION_H

#include <weft/weft.h>

struct server {
	int listener;
	weft_nsec timeout_ns; /* for the request, to connect, and for a client
				  that was refused to read why */
};

struct session {
	int fd;
	const struct server *server;
};

/* The task of a client, which closes its connection.  arg is a struct
 * session. */
int64_t session_run(void *arg);

#endif

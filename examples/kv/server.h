/* SPDX-License-Identifier: MIT */
#ifndef KV_SERVER_H
#define KV_SERVER_H

#include <weft/weft.h>

#include "clients.h"
#include "table.h"

struct server {
	int listener;
	int signal_fd;	    /* the signals that end the server */
	weft_nsec grace_ns; /* for clients to take their last answers */
	struct table *table;
	struct clients clients;
	struct weft_scope *sessions;
};

/* Serves until a signal comes.  Then what clients have sent is answered, and
 * their connections end; a client that takes no answers is cut off after the
 * time of grace.  arg is a struct server.  Returns 0, or why it could not go
 * on. */
int64_t server_run(void *arg);

#endif

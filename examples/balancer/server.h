/* SPDX-License-Identifier: MIT */
#ifndef BALANCER_SERVER_H
#define BALANCER_SERVER_H

#include "pool.h"

struct server {
	int listener;
	int signal_fd; /* the signals that end the server */
	weft_nsec check_ns;
	weft_nsec connect_ns;
	weft_nsec grace_ns;
	struct pool pool;
	struct weft_wait_group open; /* the connections, from the accept on */
	struct weft_scope *sessions;
};

/* Passes on connections until a signal comes.  Then those that are open may end
 * by themselves for the time of grace.  arg is a struct server.  Returns 0, or
 * why it could not go on. */
int64_t server_run(void *arg);

#endif

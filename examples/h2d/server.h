/* SPDX-License-Identifier: MIT */
#ifndef H2D_SERVER_H
#define H2D_SERVER_H

#include <nghttp2/nghttp2.h>
#include <weft/weft.h>

#include "../common/http/site.h"

/* Shared by all connections. */
struct server {
	struct site site;
	int signal_fd;	      /* of SIGTERM */
	unsigned streams_max; /* of a connection, at the same time */
	weft_nsec idle_ns;    /* without a request and without progress */
	weft_nsec grace_ns;   /* for open streams, after SIGTERM */
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;

	struct weft_event stopping; /* SIGTERM came */
	struct weft_scope *connections;
	struct weft_wait_group open; /* counts the connections */
};

/* The first task: accepts connections until SIGTERM comes, lets their streams
 * finish, and closes the listener.  arg is a struct server. */
int64_t server_run(void *arg);

#endif

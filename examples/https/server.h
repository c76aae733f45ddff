/* SPDX-License-Identifier: MIT */
/*
 * The server: a context for all connections, and a task for each of them.
 */
#ifndef HTTPS_SERVER_H
#define HTTPS_SERVER_H

#include <weft/tls.h>
#include <weft/weft.h>

struct server {
	struct weft_tls_opts opts;
	struct weft_tls_context *context;
	int listener;
	int signals;
};

/* Serves until the listener fails; the argument is a struct server.  At each
 * signal it reads the certificate again. */
int64_t serve(void *arg);

#endif

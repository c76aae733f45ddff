/* SPDX-License-Identifier: MIT */
#ifndef BALANCER_CHECK_H
#define BALANCER_CHECK_H

#include "server.h"

struct check {
	struct server *server;
	struct backend *backend;
};

/* The task that connects to a backend again and again, whether it is up or
 * down, and reports the results.  arg is a struct check. */
int64_t check_run(void *arg);

/* Connects to a backend within the time for that, and reports the result, but
 * not that the task was cancelled.  Suspends.  Returns a descriptor or an
 * error. */
int check_connect(struct server *server, struct backend *backend);

#endif

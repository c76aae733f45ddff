/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_SERVER_H
#define HTTPD_SERVER_H

#include "../common/http/site.h"

/* Shared by all connections; not written any more once the server runs. */
struct server {
	struct site site;
	weft_nsec header_ns; /* for a whole request header */
};

/* The first task: accepts connections, and starts a task for each.  arg is a
 * struct server.  Returns only if the listener fails. */
int64_t server_run(void *arg);

#endif

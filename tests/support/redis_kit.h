/* SPDX-License-Identifier: MIT */
/* A real redis-server. */
#ifndef WEFT_TESTS_SUPPORT_REDIS_KIT_H
#define WEFT_TESTS_SUPPORT_REDIS_KIT_H

#include <poll.h>

#include "tests/support/server_kit.h"

/* Returns false if it does not begin to serve. */
static inline bool redis_begin(struct server *server, const char *program)
{
	if (!server_make_dir(server))
		return false;
	for (int i = 0; i < SERVER_STARTS_MAX; i++) {
		server_choose_port(server);
		server->pid = server_spawn(server, (const char *const[]){
			program, "--bind", "127.0.0.1", "--port", server->port,
			"--dir", server->dir, "--save", "", "--appendonly",
			"no", "--unixsocket", "socket", NULL });
		if (server_wait(server))
			return true;
	}
	return false;
}

#endif

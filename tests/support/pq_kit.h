/* SPDX-License-Identifier: MIT */
/* A real PostgreSQL, in whose databases each user is trusted. */
#ifndef WEFT_TESTS_SUPPORT_PQ_KIT_H
#define WEFT_TESTS_SUPPORT_PQ_KIT_H

#include <glob.h>
#include <libpq-fe.h>
#include <poll.h>

#include "tests/support/server_kit.h"

/* The directory of its programs, which Debian has below the version's; false if
 * it is not installed. */
static inline bool pq_programs(char dir[256])
{
	glob_t found;
	char path[256];
	size_t length;
	bool is = false;

	if (server_program("initdb", NULL, path) &&
	    server_program("postgres", NULL, path)) {
		length = strlen(path) - strlen("/postgres");
		snprintf(dir, 256, "%.*s", (int)length, path);
		return true;
	}
	if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) == 0) {
		snprintf(dir, 256, "%s", found.gl_pathv[found.gl_pathc - 1]);
		is = server_program("initdb", dir, path) &&
		     server_program("postgres", dir, path);
		globfree(&found);
	}
	return is;
}

static inline void pq_conninfo(const struct server *server, char text[128])
{
	snprintf(text, 128,
		 "host=127.0.0.1 port=%s user=weft dbname=postgres",
		 server->port);
}

/* It listens before it takes connections. */
static inline bool pq_wait(struct server *server)
{
	struct timespec pause = { 0, 10000000 };
	char conninfo[128];

	if (!server_wait(server))
		return false;
	pq_conninfo(server, conninfo);
	for (int i = 0; i < 6000; i++) {
		if (PQping(conninfo) == PQPING_OK)
			return true;
		ppoll(NULL, 0, &pause, NULL);
	}
	server_end(server, SIGQUIT);
	return false;
}

/* Returns false if it does not begin to serve. */
static inline bool pq_begin(struct server *server, const char *dir)
{
	char initdb[300], postgres[300];

	snprintf(initdb, sizeof(initdb), "%s/initdb", dir);
	snprintf(postgres, sizeof(postgres), "%s/postgres", dir);
	server->user = getpwnam("postgres") ? "postgres" : "nobody";
	if (!server_make_dir(server) ||
	    server_run(server, (const char *const[]){
			initdb, "-D", "data", "-U", "weft", "--auth=trust",
			"--no-sync", "--locale=C", "-E", "UTF8", NULL }) != 0)
		return false;
	for (int i = 0; i < SERVER_STARTS_MAX; i++) {
		server_choose_port(server);
		server->pid = server_spawn(server, (const char *const[]){
			postgres, "-D", "data", "-h", "127.0.0.1", "-p",
			server->port, "-k", server->dir, "-F", "-c",
			"max_connections=40", "-c", "autovacuum=off", "-c",
			"shared_buffers=16MB", NULL });
		if (pq_wait(server))
			return true;
	}
	return false;
}

/* SIGQUIT ends its processes, too, and waits for nothing. */
static inline void pq_end(struct server *server)
{
	server_end(server, SIGQUIT);
	server_remove_dir(server);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * restart [ADDR [HANDOVER]] [--grace-ms N] - an echo server that is replaced
 * without a pause.
 *
 * Shows	a hot restart.  Each process listens on a Unix socket for the
 *		next one, gives it both listeners, and goes on until that one
 *		takes connections.  Connections that are open finish in the old
 *		process, within 5 s if no other time is given.  No client is
 *		refused, and none is reset.
 * Run		build/examples/restart 127.0.0.1:7000 &
 *		build/examples/restart 127.0.0.1:7000 &
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../common/number.h"
#include "server.h"

static const char *address = "127.0.0.1:7000";
static const char *handover = "unix:@weft-restart";

/* The sockets of the server that runs, or new ones. */
static int sockets_get(struct server *server)
{
	int *sockets = server->sockets;

	server->old = handover_take(handover, sockets);
	if (server->old >= 0)
		return 0;
	if (server->old != -ECONNREFUSED)
		return server->old;
	sockets[CLIENTS] = weft_tcp_listen(address, NULL);
	if (sockets[CLIENTS] < 0)
		return sockets[CLIENTS];
	sockets[SUCCESSORS] = weft_unix_listen(handover, NULL);
	if (sockets[SUCCESSORS] < 0)
		weft_close(sockets[CLIENTS]);
	return sockets[SUCCESSORS] < 0 ? sockets[SUCCESSORS] : 0;
}

static int64_t run(void *arg)
{
	struct server server = { .open = WEFT_WAIT_GROUP_INIT(0),
				 .grace_ns = WEFT_MS(*(unsigned *)arg) };
	char text[WEFT_ADDR_TEXT_BYTES];
	int r = sockets_get(&server);

	if (r < 0)
		return r;
	printf("listening on %s\n",
	       weft_local_addr_text(server.sockets[CLIENTS], text));
	fflush(stdout);
	return server_run(&server);
}

int main(int argc, char **argv)
{
	unsigned grace_ms = number_option(argc, argv, "grace-ms", 5000);
	int64_t result;

	if (argc > optind)
		address = argv[optind];
	if (argc > optind + 1)
		handover = argv[optind + 1];
	result = weft_run(run, &grace_ms, NULL);
	if (result < 0)
		fprintf(stderr, "restart: %s: %s\n", address,
			strerror((int)-result));
	return result < 0;
}

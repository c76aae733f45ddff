/* SPDX-License-Identifier: MIT */
/*
 * chat [ADDR] - a chat room: lines from one connection go to all others.
 *
 * Shows	a broadcast, which never waits for a receiver: a connection that
 *		takes lines too slowly misses some, and is told how many; two
 *		tasks for each connection in a group, where the end of either
 *		ends the other.
 * Run		build/examples/chat 127.0.0.1:7000 &
 *		nc 127.0.0.1 7000		in several terminals
 */
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#include "client.h"

static int64_t serve(void *arg)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int fd = -1, listener = weft_tcp_listen(arg, NULL);

	if (listener < 0)
		return listener;
	printf("listening on %s\n", weft_local_addr_text(listener, text));
	fflush(stdout);
	WEFT_SUPERVISE (clients)
		while ((fd = weft_accept(listener, NULL)) >= 0)
			if (WEFT_GO(clients, client_run, fd) < 0)
				weft_close(fd);
	weft_close(listener);
	return fd;
}

int main(int argc, char **argv)
{
	char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	int64_t result = weft_run(serve, address, NULL);

	fprintf(stderr, "chat: %s: %s\n", address, strerror((int)-result));
	return 1;
}

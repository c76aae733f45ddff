/* SPDX-License-Identifier: MIT */
/*
 * pubsub [ADDR] - passes published lines on to subscribers.
 *
 * Shows	a table of topics, each a broadcast, under a reader-writer lock
 *		(topic.c); a task for each subscription, beside the one that
 *		executes commands (session.c), all writing to one connection
 *		under a mutex (peer.c).  A slow subscriber misses lines, is told
 *		how many, and holds up no other task.
 * Run		build/examples/pubsub 127.0.0.1:7000 &  nc 127.0.0.1 7000
 *		SUB weather			answer: OK, or ERR and a reason
 *		PUB weather rain at noon	sent as "weather rain at noon"
 */
#include <stdio.h>
#include <string.h>

#include "session.h"
#include "topic.h"

static int64_t serve(void *arg)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int fd = -1, listener = weft_tcp_listen(arg, NULL);

	if (listener < 0)
		return listener;
	printf("listening on %s\n", weft_local_addr_text(listener, text));
	fflush(stdout);
	WEFT_SUPERVISE (sessions)
		while ((fd = weft_accept(listener, NULL)) >= 0)
			if (WEFT_GO(sessions, session_run, fd) < 0)
				weft_close(fd);
	weft_close(listener);
	return fd;
}

int main(int argc, char **argv)
{
	char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	int64_t result = topics_init();

	if (result == 0)
		result = weft_run(serve, address, NULL);
	fprintf(stderr, "pubsub: %s: %s\n", address, strerror((int)-result));
	return 1;
}

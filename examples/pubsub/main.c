/* SPDX-License-Identifier: MIT */
/*
 * pubsub [ADDR] - passes on what is published to who has subscribed.
 *
 * Shows	a table of topics, each a broadcast, under a reader-writer lock
 *		(topic.c); a task a subscription, beside the one that obeys
 *		commands (session.c), all writing to one connection under a
 *		mutex (peer.c).  A subscriber that is slow misses lines, and is
 *		told how many; it holds nobody up.
 * Run		build/examples/pubsub 127.0.0.1:7000 &  nc 127.0.0.1 7000
 *		SUB weather			answered by OK, or by ERR why
 *		PUB weather rain at noon	sent as "weather rain at noon"
 * Needs	Linux 6.1 or newer
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

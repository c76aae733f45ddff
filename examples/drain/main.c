/* SPDX-License-Identifier: MIT */
/*
 * drain [ADDR] [--grace-ms N] - an echo server that ends gracefully on SIGTERM.
 *
 * Shows	a task that waits for a signal.  When it comes, the server takes
 *		no further connections, and open ones may finish until a
 *		deadline, of 5 s if no other is given; those that are left
 *		then are cancelled.
 * Run		build/examples/drain 127.0.0.1:7000 &  nc 127.0.0.1 7000
 *		kill %1
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../common/number.h"
#include "server.h"

int main(int argc, char **argv)
{
	unsigned grace_ms = number_option(argc, argv, "grace-ms", 5000);
	const char *address = argc > optind ? argv[optind] : "127.0.0.1:7000";
	struct server server = { .grace_ns = WEFT_MS(grace_ms),
				 .open = WEFT_WAIT_GROUP_INIT(0) };
	char text[WEFT_ADDR_TEXT_BYTES];
	int64_t result;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	server.signal_fd = weft_signal_open(&signals);
	server.listener = weft_tcp_listen(address, NULL);
	result = server.listener < 0 ? server.listener : server.signal_fd;
	if (result >= 0) {
		printf("listening on %s\n",
		       weft_local_addr_text(server.listener, text));
		fflush(stdout);
		result = weft_run(server_run, &server, NULL);
	}
	if (result < 0)
		fprintf(stderr, "drain: %s: %s\n", address,
			strerror((int)-result));
	return result < 0;
}

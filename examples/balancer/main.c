/* SPDX-License-Identifier: MIT */
/*
 * balancer ADDR BACKEND... - passes connections on to several servers.
 *
 * Shows	a task for each server that checks whether it is there
 *		(check.c), beside those for clients (session.c): what one finds
 *		out, all use (pool.c).  A client whose server is gone gets
 *		another one.
 *		On SIGTERM no further connections are taken, and open ones may
 *		end by themselves (server.c).
 * Run		build/examples/balancer 127.0.0.1:8000 \
 *			127.0.0.1:7000 127.0.0.1:7001
 */
#include <stdio.h>
#include <string.h>

#include "../common/serving.h"
#include "options.h"

int main(int argc, char **argv)
{
	struct server server = {
		.check_ns = WEFT_SEC(1),
		.connect_ns = WEFT_SEC(1),
		.grace_ns = WEFT_SEC(5),
		.pool.lock = PTHREAD_MUTEX_INITIALIZER,
		.open = WEFT_WAIT_GROUP_INIT(0),
	};
	struct options options = { 0 };
	struct weft_opts opts = WEFT_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	int64_t result;

	options_parse(&options, &server, argc, argv);
	serving_raise_descriptor_limit();
	server.signal_fd = serving_open_signals();
	server.listener = weft_tcp_listen(options.address, NULL);
	result = server.listener < 0 ? server.listener : server.signal_fd;
	if (result >= 0) {
		printf("listening on %s\n",
		       weft_local_addr_text(server.listener, text));
		fflush(stdout);
		opts.workers = options.workers;
		result = weft_run(server_run, &server, &opts);
	}
	if (result < 0)
		fprintf(stderr, "balancer: %s: %s\n", options.address,
			strerror((int)-result));
	return result < 0;
}

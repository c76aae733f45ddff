/* SPDX-License-Identifier: MIT */
/*
 * dns_forward ADDR UPSTREAM - passes queries of DNS on to a server, over UDP
 * and TCP, and keeps its answers.
 *
 * Shows	many datagrams with one call, and a task for each query that has
 *		to wait.  Begin with datagrams.c.
 * Run		build/examples/dns_forward 127.0.0.1:5353 9.9.9.9:53 &
 *		dig -p 5353 @127.0.0.1 example.org
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

static int64_t serve(void *arg)
{
	struct server *server = arg;
	int64_t result = 0;

	/* A task that fails ends the other. */
	WEFT_SCOPE(tasks, &result)
		if (WEFT_GO(tasks, serve_datagrams, server) < 0 ||
		    WEFT_GO(tasks, serve_connections, server) < 0)
			weft_scope_fail(tasks, -ENOMEM);
	return result;
}

/* TCP takes the port that UDP got. */
static int sockets_open(struct server *server, const char *address)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	int r;

	opts.want_local = true;
	opts.receive_bytes = 1 << 20;
	r = weft_udp_open(&server->udp, address, &opts);
	if (r < 0)
		return r;
	weft_local_addr_text(weft_udp_fd(&server->udp), text);
	server->listener = weft_tcp_listen(text, NULL);
	if (server->listener < 0)
		return server->listener;
	printf("listening on %s\n", text);
	return fflush(stdout);
}

static int run(char **argv, unsigned workers)
{
	struct server server = { .upstream = argv[1], .cache = cache_new() };
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_addr upstream;
	int64_t r = weft_addr_parse(argv[1], &upstream);
	const char *what = argv[1];

	if (r == 0) {
		what = argv[0];
		r = server.cache ? sockets_open(&server, argv[0]) : -ENOMEM;
	}
	opts.workers = workers;
	if (r == 0)
		r = weft_run(serve, &server, &opts);
	fprintf(stderr, "dns_forward: %s: %s\n", what, strerror((int)-r));
	cache_free(server.cache);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct option table[] = {
		{ "workers", required_argument, NULL, 'w' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned workers = 0;
	char *end = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "w:", table, NULL)) == 'w') {
		workers = (unsigned)strtoul(optarg, &end, 10);
		if (*end || !workers || workers > 1024)
			break;
	}
	if (option >= 0 || optind + 2 != argc) {
		fprintf(stderr,
			"usage: dns_forward ADDR UPSTREAM [--workers N]\n"
			"N is 1 to 1024; one per CPU if not given\n");
		return 2;
	}
	return run(argv + optind, workers);
}

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
#include <string.h>
#include <unistd.h>

#include "../common/number.h"
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

/* UDP takes the port that TCP got. */
static int sockets_try(struct server *server, const char *address, char *text)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	int r;

	opts.want_local = true;
	opts.receive_bytes = 1 << 20;
	server->listener = weft_tcp_listen(address, NULL);
	if (server->listener < 0)
		return server->listener;
	weft_local_addr_text(server->listener, text);
	r = weft_udp_open(&server->udp, text, &opts);
	if (r < 0)
		close(server->listener);
	return r;
}

/* A port that is free for TCP may not be for UDP: then another is tried, if any
 * will do. */
static int sockets_open(struct server *server, const char *address)
{
	const char *port = strrchr(address, ':');
	int tries = port && strcmp(port, ":0") == 0 ? 100 : 1, r;
	char text[WEFT_ADDR_TEXT_BYTES];

	do
		r = sockets_try(server, address, text);
	while (r == -EADDRINUSE && --tries > 0);
	if (r < 0)
		return r;
	printf("listening on %s\n", text);
	return fflush(stdout);
}

static int run(struct server *server, const char *address, unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	const char *what = server->upstream.address;
	struct weft_addr upstream;
	int64_t r = weft_addr_parse(what, &upstream);

	if (r == 0) {
		what = address;
		server->cache = cache_new();
		r = server->cache ? sockets_open(server, address) : -ENOMEM;
	}
	opts.workers = workers;
	if (r == 0)
		r = weft_run(serve, server, &opts);
	fprintf(stderr, "dns_forward: %s: %s\n", what, strerror((int)-r));
	cache_free(server->cache);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct option table[] = {
		{ "workers", required_argument, NULL, 'w' },
		{ "patience-ms", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	struct server server = { .cache = NULL };
	unsigned workers = 0, patience_ms = 2000;
	bool right = true;
	int option;

	while (right &&
	       (option = getopt_long(argc, argv, "w:p:", table, NULL)) >= 0) {
		unsigned number = 0;

		if (option == 'w')
			number = workers = number_read(optarg, 1024);
		else if (option == 'p')
			number = patience_ms = number_read(optarg, 1000000);
		right = number > 0;
	}
	if (!right || optind + 2 != argc) {
		fprintf(stderr, "usage: dns_forward ADDR UPSTREAM "
				"[--workers N] [--patience-ms N]\n"
				"workers: 1 to 1024; one per CPU if not "
				"given\n"
				"patience: before UPSTREAM is asked again, at "
				"most three times; 2000\n");
		return 2;
	}
	server.upstream.address = argv[optind + 1];
	server.upstream.patience_ns = WEFT_MS(patience_ms);
	return run(&server, argv[optind], workers);
}

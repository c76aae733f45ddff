/* SPDX-License-Identifier: MIT */
/*
 * socks5 [ADDR] [--timeout-ms N] - connects clients to where they ask
 * (RFC 1928).
 *
 * Shows	a binary protocol read from a stream (request.c), one deadline
 *		for all of it, for the look-up of a name and for the connect
 *		(weft_dial()), and then the same stream copied both ways
 *		(../common/relay.c): data that came early is not lost.
 * Run		build/examples/socks5 127.0.0.1:1080 &
 *		curl --socks5 127.0.0.1:1080 http://127.0.0.1:8080/
 *
 * Only CONNECT, without authentication, so listen on an address that none but
 * friends reach.  They reach all that this machine does.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/number.h"
#include "session.h"

static int64_t serve(void *arg)
{
	const struct server *server = arg;
	struct session session = { -1, server };

	WEFT_SUPERVISE (sessions)
		while ((session.fd = weft_accept(server->listener, NULL)) >= 0)
			if (WEFT_GO(sessions, session_run, session) < 0)
				weft_close(session.fd);
	weft_close(server->listener);
	return session.fd;
}

static const char *parse_options(struct server *server, int argc, char **argv)
{
	static const struct option table[] = {
		{ "timeout-ms", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "t:", table, NULL)) == 't') {
		unsigned number = number_read(optarg, 1000000);

		if (!number)
			break;
		server->timeout_ns = WEFT_MS(number);
	}
	if (option >= 0 || optind + 1 < argc) {
		fprintf(stderr, "usage: socks5 [ADDR] [--timeout-ms N]\n"
				"N is 1 to 1000000; 10000 if not given\n");
		exit(2);
	}
	return optind < argc ? argv[optind] : "127.0.0.1:1080";
}

int main(int argc, char **argv)
{
	struct server server = { .timeout_ns = WEFT_SEC(10) };
	const char *address = parse_options(&server, argc, argv);
	char text[WEFT_ADDR_TEXT_BYTES];
	int64_t result;

	server.listener = weft_tcp_listen(address, NULL);
	result = server.listener;
	if (result >= 0) {
		printf("listening on %s\n",
		       weft_local_addr_text(server.listener, text));
		fflush(stdout);
		result = weft_run(serve, &server, NULL);
	}
	fprintf(stderr, "socks5: %s: %s\n", address, strerror((int)-result));
	return 1;
}

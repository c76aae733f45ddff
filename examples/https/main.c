/* SPDX-License-Identifier: MIT */
/*
 * https ADDR CHAIN.PEM KEY.PEM - answers each request with the result of its
 * handshake.
 *
 * Shows	a context that all connections share, and that takes a renewed
 *		certificate at a SIGHUP, while it serves.
 * Run		build/examples/https 127.0.0.1:8443 chain.pem key.pem &
 *		curl --cacert ca.pem https://localhost:8443/
 */
#include "server.h"

#include <stdio.h>
#include <string.h>

static int set_up(struct server *server, char **argv)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	sigset_t hangup;

	server->opts.cert_file = argv[2];
	server->opts.key_file = argv[3];
	server->opts.alpn = "http/1.1";
	if (weft_tls_context_new(&server->opts, &server->context) < 0) {
		fprintf(stderr, "https: %s: %s\n", server->opts.error, argv[2]);
		return -1;
	}
	sigemptyset(&hangup);
	sigaddset(&hangup, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &hangup, NULL);
	server->signals = weft_signal_open(&hangup);
	server->listener = weft_tcp_listen(argv[1], NULL);
	if (server->signals < 0 || server->listener < 0) {
		fprintf(stderr, "https: cannot listen on %s\n", argv[1]);
		return -1;
	}
	printf("listening on %s\n",
	       weft_local_addr_text(server->listener, text));
	return fflush(stdout);
}

int main(int argc, char **argv)
{
	static char error[200];
	struct server server = { .opts = WEFT_TLS_OPTS_INIT };

	if (argc != 4) {
		fprintf(stderr, "usage: https ADDR CHAIN.PEM KEY.PEM\n");
		return 2;
	}
	server.opts.error = error;
	server.opts.error_bytes = sizeof(error);
	if (set_up(&server, argv) < 0)
		return 1;
	return weft_run(serve, &server, NULL) < 0;
}

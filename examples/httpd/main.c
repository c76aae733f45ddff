/* SPDX-License-Identifier: MIT */
/*
 * httpd DIR [ADDR] - serves the files below a directory over HTTP/1.1, with
 * TLS if it has a certificate.
 *
 * Shows	a complete server: a task for each connection, deadlines,
 *		limits.  Read server.c, then session.c; the rest is HTTP.
 * Run		build/examples/httpd . 127.0.0.1:8080
 */
#include "options.h"

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct options options;
	struct server *server = &options.server;
	int64_t result;

	options_parse(&options, argc, argv);
	if (!site_open(&server->site, &options.site))
		return 1;
	opts.workers = options.workers;
	result = weft_run(server_run, server, &opts);
	site_close(&server->site);
	return site_fail("go on serving", options.site.directory, (int)-result);
}

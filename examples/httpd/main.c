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
	struct server server;
	int64_t result;

	options_parse(&server, argc, argv);
	if (!site_open(&server.site))
		return 1;
	result = site_run(&server.site, server_run, &server);
	site_close(&server.site);
	return site_fail("go on serving", server.site.opts.directory,
			 (int)-result);
}

/* SPDX-License-Identifier: MIT */
/*
 * h2d DIR [ADDR] - serves the files below a directory over HTTP/2, with TLS if
 * it has a certificate.
 *
 * Shows	a library that works by callbacks, libnghttp2, in tasks.  Begin
 *		with connection.h.
 * Run		build/examples/h2d . 127.0.0.1:8080 &
 *		curl --http2-prior-knowledge http://127.0.0.1:8080/
 */
#include "../common/serving.h"
#include "callbacks.h"
#include "options.h"

int main(int argc, char **argv)
{
	struct server server;
	int64_t result = -ENOMEM;

	options_parse(&server, argc, argv);
	server.signal_fd = serving_open_signals();
	if (server.signal_fd < 0)
		return site_fail("wait for", "signals", -server.signal_fd);
	if (!site_open(&server.site))
		return 1;
	if (callbacks_new(&server))
		result = site_run(&server.site, server_run, &server);
	callbacks_free(&server);
	site_close(&server.site);
	return result < 0 ?
		       site_fail("go on serving", server.site.opts.directory,
				 (int)-result) :
		       0;
}

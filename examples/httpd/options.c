/* SPDX-License-Identifier: MIT */
#include "../common/http/options.h"
#include "options.h"

static const char usage[] = "usage: httpd DIR [ADDR] [OPTION...]\n"
			    "Serves the files beneath DIR over HTTP.\n";

static const char own_usage[] =
	"    --header-timeout-ms N  limit for a whole request header\n"
	"                           (default: 5000)\n";

void options_parse(struct server *server, int argc, char **argv)
{
	unsigned header_ms = 5000;
	const struct site_program program = {
		.usage = usage,
		.own_usage = own_usage,
		.alpn = "http/1.1",
		.connections_max = 20000,
		.own_count = 1,
		.own = { { "header-timeout-ms", &header_ms } },
	};

	*server = (struct server){ 0 };
	site_opts_parse(&server->site.opts, &program, argc, argv);
	server->header_ns = WEFT_MS(header_ms);
}

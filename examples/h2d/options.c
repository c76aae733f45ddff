/* SPDX-License-Identifier: MIT */
#include "../common/http/options.h"
#include "options.h"

static const char usage[] =
	"usage: h2d DIR [ADDR] [OPTION...]\n"
	"Serves the files beneath DIR over HTTP/2.  Ends at a SIGTERM, when\n"
	"open streams are done.\n";

static const char own_usage[] =
	"    --max-streams N        of a connection at a time (default: 100)\n"
	"    --idle-ms N            for a connection on which no request\n"
	"                           comes and no answer gets on, and for an\n"
	"                           answer that gets no further (default:\n"
	"                           60000)\n"
	"    --grace-ms N           for open streams, after SIGTERM\n"
	"                           (default: 30000)\n";

void options_parse(struct server *server, int argc, char **argv)
{
	unsigned idle_ms = 60000, grace_ms = 30000;
	const struct site_program program = {
		.usage = usage,
		.own_usage = own_usage,
		.alpn = "h2",
		.connections_max = 10000,
		.own_count = 3,
		.own = { { "max-streams", &server->streams_max },
			 { "idle-ms", &idle_ms },
			 { "grace-ms", &grace_ms } },
	};

	*server = (struct server){ .streams_max = 100 };
	site_opts_parse(&server->site.opts, &program, argc, argv);
	server->idle_ns = WEFT_MS(idle_ms);
	server->grace_ns = WEFT_MS(grace_ms);
}

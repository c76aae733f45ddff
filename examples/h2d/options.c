/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/number.h"
#include "options.h"

static const char usage[] =
	"usage: h2d DIR [ADDR] [OPTION...]\n"
	"Serves the files beneath DIR over HTTP/2.  ADDR is 127.0.0.1:8080 if\n"
	"not given; port 0 is any free port.  Ends at a SIGTERM, when open\n"
	"streams are done.\n"
	"\n"
	"-w, --workers N          threads (default: one per CPU)\n"
	"    --max-connections N  further ones wait until one ends\n"
	"                         (default: 10000)\n"
	"    --max-streams N      of a connection at a time (default: 100)\n"
	"    --idle-ms N          for a connection on which no request comes\n"
	"                         and no answer gets on, and for an answer\n"
	"                         that gets no further (default: 60000)\n"
	"    --grace-ms N         for open streams, after SIGTERM\n"
	"                         (default: 30000)\n"
	"    --cert FILE          serve over TLS: the certificate, then those\n"
	"                         that lead to its root, as PEM\n"
	"    --key FILE           its key (default: in the same file)\n"
	"-v, --verbose            print a line for each request\n"
	"-h, --help               print this text\n";

enum {
	KEY_CONNECTIONS = 256,
	KEY_STREAMS,
	KEY_IDLE,
	KEY_GRACE,
	KEY_CERT,
	KEY_KEY
};

static const struct option table[] = {
	{ "workers", required_argument, NULL, 'w' },
	{ "max-connections", required_argument, NULL, KEY_CONNECTIONS },
	{ "max-streams", required_argument, NULL, KEY_STREAMS },
	{ "idle-ms", required_argument, NULL, KEY_IDLE },
	{ "grace-ms", required_argument, NULL, KEY_GRACE },
	{ "cert", required_argument, NULL, KEY_CERT },
	{ "key", required_argument, NULL, KEY_KEY },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static _Noreturn void refuse(void)
{
	fputs(usage, stderr);
	exit(2);
}

static unsigned parse_number(const char *text)
{
	return number_wanted("h2d", text, 1000000);
}

static void parse_option(struct options *options, int key)
{
	struct server *server = &options->server;

	switch (key) {
	case 'w':
		options->workers = parse_number(optarg);
		return;
	case KEY_CONNECTIONS:
		server->connections_max = parse_number(optarg);
		return;
	case KEY_STREAMS:
		server->streams_max = parse_number(optarg);
		return;
	case KEY_IDLE:
		server->idle_ns = WEFT_MS(parse_number(optarg));
		return;
	case KEY_GRACE:
		server->grace_ns = WEFT_MS(parse_number(optarg));
		return;
	case KEY_CERT:
		options->site.cert = optarg;
		return;
	case KEY_KEY:
		options->site.key = optarg;
		return;
	case 'v':
		server->verbose = true;
		return;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	default:
		refuse();
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	int key;

	*options = (struct options){
		.site = { .address = "127.0.0.1:8080", .alpn = "h2" },
		.server = { .connections_max = 10000,
			    .streams_max = 100,
			    .idle_ns = WEFT_SEC(60),
			    .grace_ns = WEFT_SEC(30) },
	};
	while ((key = getopt_long(argc, argv, "w:vh", table, NULL)) >= 0)
		parse_option(options, key);
	if (optind == argc || optind + 2 < argc ||
	    (options->site.key && !options->site.cert))
		refuse();
	options->site.directory = argv[optind];
	if (optind + 1 < argc)
		options->site.address = argv[optind + 1];
}

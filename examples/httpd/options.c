/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/number.h"
#include "options.h"

static const char usage[] =
	"usage: httpd DIR [ADDR] [OPTION...]\n"
	"Serves the files beneath DIR over HTTP.  ADDR is 127.0.0.1:8080 if\n"
	"not given; port 0 is any free port.\n"
	"\n"
	"-w, --workers N            threads (default: one per CPU)\n"
	"    --max-connections N    further ones wait until one ends\n"
	"                           (default: 20000)\n"
	"    --header-timeout-ms N  limit for a whole request header\n"
	"                           (default: 5000)\n"
	"    --cert FILE            serve over TLS: the certificate, then "
	"those\n"
	"                           that lead to its root, as PEM\n"
	"    --key FILE             its key (default: in the same file)\n"
	"-v, --verbose              print a line for each request\n"
	"-h, --help                 print this text\n";

enum { KEY_CONNECTIONS = 256, KEY_HEADER, KEY_CERT, KEY_KEY };

static const struct option table[] = {
	{ "workers", required_argument, NULL, 'w' },
	{ "max-connections", required_argument, NULL, KEY_CONNECTIONS },
	{ "header-timeout-ms", required_argument, NULL, KEY_HEADER },
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
	return number_wanted("httpd", text, 1000000);
}

static void parse_option(struct options *options, int key)
{
	switch (key) {
	case 'w':
		options->workers = parse_number(optarg);
		return;
	case KEY_CONNECTIONS:
		options->server.connections_max = parse_number(optarg);
		return;
	case KEY_HEADER:
		options->server.header_ns = WEFT_MS(parse_number(optarg));
		return;
	case KEY_CERT:
		options->site.cert = optarg;
		return;
	case KEY_KEY:
		options->site.key = optarg;
		return;
	case 'v':
		options->server.verbose = true;
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
		.site = { .address = "127.0.0.1:8080", .alpn = "http/1.1" },
		.server = { .connections_max = 20000,
			    .header_ns = WEFT_SEC(5) },
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

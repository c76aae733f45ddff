/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/number.h"
#include "options.h"

static const char usage[] =
	"usage: balancer ADDR BACKEND... [OPTION...]\n"
	"Passes connections on to at most 64 backends, each in turn.\n"
	"\n"
	"-l, --least          to the one with the fewest connections\n"
	"-w, --workers N      threads (default: one per CPU)\n"
	"    --check-ms N     time between checks of a backend (default: "
	"1000)\n"
	"    --connect-ms N   time for a connect to a backend (default: 1000)\n"
	"    --grace-ms N     time for connections at the end (default: "
	"5000)\n";

enum { KEY_CHECK = 256, KEY_CONNECT, KEY_GRACE };

static const struct option table[] = {
	{ "least", no_argument, NULL, 'l' },
	{ "workers", required_argument, NULL, 'w' },
	{ "check-ms", required_argument, NULL, KEY_CHECK },
	{ "connect-ms", required_argument, NULL, KEY_CONNECT },
	{ "grace-ms", required_argument, NULL, KEY_GRACE },
	{ NULL, 0, NULL, 0 },
};

static _Noreturn void refuse(void)
{
	fputs(usage, stderr);
	exit(2);
}

static unsigned parse_number(const char *text)
{
	unsigned number = number_read(text, 1000000);

	if (!number)
		refuse();
	return number;
}

static void parse_option(struct options *options, struct server *server,
			 int key)
{
	switch (key) {
	case 'l':
		server->pool.by_connections = true;
		return;
	case 'w':
		options->workers = parse_number(optarg);
		return;
	case KEY_CHECK:
		server->check_ns = WEFT_MS(parse_number(optarg));
		return;
	case KEY_CONNECT:
		server->connect_ns = WEFT_MS(parse_number(optarg));
		return;
	case KEY_GRACE:
		server->grace_ns = WEFT_MS(parse_number(optarg));
		return;
	default:
		refuse();
	}
}

void options_parse(struct options *options, struct server *server, int argc,
		   char **argv)
{
	int key;

	while ((key = getopt_long(argc, argv, "lw:", table, NULL)) >= 0)
		parse_option(options, server, key);
	if (argc - optind < 2)
		refuse();
	options->address = argv[optind++];
	for (; optind < argc; optind++)
		if (pool_add(&server->pool, argv[optind]) < 0)
			refuse();
}

/* SPDX-License-Identifier: MIT */
/*
 * The command line of a server of files: options that all of them have, then
 * those of the program, all of which are numbers.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../number.h"
#include "options.h"

#define ADDRESS "127.0.0.1:8080"

static const char usage[] =
	"ADDR is " ADDRESS " if not given; port 0 is any free port.\n"
	"\n"
	"-w, --workers N            threads (default: one per CPU)\n"
	"    --max-connections N    further ones wait until one ends\n"
	"                           (default: %u)\n"
	"%s"
	"    --cert FILE            serve over TLS: the certificate, then\n"
	"                           those that lead to its root, as PEM\n"
	"    --key FILE             its key (default: in the same file)\n"
	"-v, --verbose              print a line for each request\n"
	"-h, --help                 print this text\n";

enum { KEY_CONNECTIONS = 256, KEY_CERT, KEY_KEY, KEY_OWN };

static const struct option shared[] = {
	{ "workers", required_argument, NULL, 'w' },
	{ "max-connections", required_argument, NULL, KEY_CONNECTIONS },
	{ "cert", required_argument, NULL, KEY_CERT },
	{ "key", required_argument, NULL, KEY_KEY },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
};

enum {
	SHARED = sizeof(shared) / sizeof(shared[0]),
	OWN_MAX = sizeof(((struct site_program *)0)->own) /
		  sizeof(struct site_option),
};

static void print_usage(const struct site_program *program, FILE *to)
{
	fputs(program->usage, to);
	fprintf(to, usage, program->connections_max, program->own_usage);
}

static _Noreturn void refuse(const struct site_program *program)
{
	print_usage(program, stderr);
	exit(2);
}

static unsigned parse_number(const char *text)
{
	return number_wanted(program_invocation_short_name, text, 1000000);
}

static void parse_option(struct site_opts *opts,
			 const struct site_program *program, int key)
{
	switch (key) {
	case 'w':
		opts->workers = parse_number(optarg);
		return;
	case KEY_CONNECTIONS:
		opts->connections_max = parse_number(optarg);
		return;
	case KEY_CERT:
		opts->cert = optarg;
		return;
	case KEY_KEY:
		opts->key = optarg;
		return;
	case 'v':
		opts->verbose = true;
		return;
	case 'h':
		print_usage(program, stdout);
		exit(0);
	default:
		if (key < KEY_OWN)
			refuse(program);
		*program->own[key - KEY_OWN].number = parse_number(optarg);
	}
}

void site_opts_parse(struct site_opts *opts, const struct site_program *program,
		     int argc, char **argv)
{
	struct option table[SHARED + OWN_MAX + 1] = { 0 };
	int key;

	memcpy(table, shared, sizeof(shared));
	for (unsigned i = 0; i < program->own_count; i++)
		table[SHARED + i] = (struct option){ program->own[i].name,
						     required_argument, NULL,
						     KEY_OWN + (int)i };
	*opts = (struct site_opts){
		.address = ADDRESS,
		.alpn = program->alpn,
		.connections_max = program->connections_max,
	};
	while ((key = getopt_long(argc, argv, "w:vh", table, NULL)) >= 0)
		parse_option(opts, program, key);
	if (optind == argc || optind + 2 < argc || (opts->key && !opts->cert))
		refuse(program);
	opts->directory = argv[optind];
	if (optind + 1 < argc)
		opts->address = argv[optind + 1];
}

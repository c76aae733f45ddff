/* SPDX-License-Identifier: MIT */
#include <argp.h>
#include <ctype.h>
#include <stdlib.h>

#include "options.h"

enum { KEY_CONNECTIONS = 256, KEY_HEADER };

static const struct argp_option table[] = {
	{ "workers", 'w', "N", 0, "threads (default: one per CPU)", 0 },
	{ "max-connections", KEY_CONNECTIONS, "N", 0,
	  "further ones wait until one ends (default: 20000)", 0 },
	{ "header-timeout-ms", KEY_HEADER, "N", 0,
	  "limit for a whole request header (default: 5000)", 0 },
	{ "verbose", 'v', NULL, 0, "print a line for each request", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static unsigned parse_number(const char *text, struct argp_state *state)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || number < 1 ||
	    number > 1000000)
		argp_error(state, "not a number from 1 to 1000000: %s", text);
	return (unsigned)number;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'w':
		options->workers = parse_number(value, state);
		return 0;
	case KEY_CONNECTIONS:
		options->server.connections_max = parse_number(value, state);
		return 0;
	case KEY_HEADER:
		options->server.header_ns = WEFT_MS(parse_number(value, state));
		return 0;
	case 'v':
		options->server.verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_usage(state);
		*(state->arg_num ? &options->address : &options->directory) =
			value;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	static const struct argp argp = {
		.options = table,
		.parser = parse_option,
		.args_doc = "DIR [ADDR]",
		.doc = "Serves the files beneath DIR over HTTP.\v"
		       "ADDR is 127.0.0.1:8080 if not given; port 0 is any "
		       "free port.",
	};

	*options = (struct options){
		.address = "127.0.0.1:8080",
		.server = { .connections_max = 20000,
			    .header_ns = WEFT_SEC(5) },
	};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, options);
}

/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/number.h"
#include "options.h"

static _Noreturn void refuse(void)
{
	fputs("usage: kv [ADDR] [--workers N] [--grace-ms N]\n"
	      "1 to 1024 workers; one per CPU if not given\n"
	      "1 to 1000000 ms for clients to take their last answers; 5000 if "
	      "not given\n",
	      stderr);
	exit(2);
}

static unsigned parse_number(const char *text, unsigned max)
{
	unsigned number = number_read(text, max);

	if (!number)
		refuse();
	return number;
}

void options_parse(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		{ "workers", required_argument, NULL, 'w' },
		{ "grace-ms", required_argument, NULL, 'g' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*options = (struct options){ "127.0.0.1:6379", 0, 5000 };
	while ((option = getopt_long(argc, argv, "w:", table, NULL)) >= 0)
		if (option == 'w')
			options->workers = parse_number(optarg, 1024);
		else if (option == 'g')
			options->grace_ms = parse_number(optarg, 1000000);
		else
			refuse();
	if (optind + 1 < argc)
		refuse();
	if (optind < argc)
		options->address = argv[optind];
}

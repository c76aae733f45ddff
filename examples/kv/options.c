/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/number.h"
#include "options.h"

void options_parse(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		{ "workers", required_argument, NULL, 'w' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*options = (struct options){ "127.0.0.1:6379", 0 };
	while ((option = getopt_long(argc, argv, "w:", table, NULL)) == 'w') {
		options->workers = number_read(optarg, 1024);
		if (!options->workers)
			break;
	}
	if (option >= 0 || optind + 1 < argc) {
		fprintf(stderr, "usage: kv [ADDR] [--workers N]\n"
				"N is 1 to 1024; one per CPU if not given\n");
		exit(2);
	}
	if (optind < argc)
		options->address = argv[optind];
}

/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "number.h"

unsigned number_read(const char *text, unsigned max)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	/* strtoul() takes spaces and signs. */
	if (!isdigit((unsigned char)*text) || *end || number > max)
		return 0;
	return (unsigned)number;
}

unsigned number_wanted(const char *program, const char *text, unsigned max)
{
	unsigned number = number_read(text, max);

	if (!number) {
		fprintf(stderr, "%s: not a number from 1 to %u: %s\n", program,
			max, text);
		exit(2);
	}
	return number;
}

unsigned number_option(int argc, char **argv, const char *name,
		       unsigned by_default)
{
	const struct option table[] = {
		{ name, required_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned number = by_default;
	int option;

	while ((option = getopt_long(argc, argv, "", table, NULL)) == 'n')
		number = number_wanted(program_invocation_short_name, optarg,
				       1000000);
	if (option >= 0)
		exit(2);
	return number;
}

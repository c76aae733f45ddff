/* SPDX-License-Identifier: MIT */
#include <ctype.h>
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

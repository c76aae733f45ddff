/* SPDX-License-Identifier: MIT */
#include <ctype.h>
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

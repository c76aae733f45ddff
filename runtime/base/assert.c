/* SPDX-License-Identifier: MIT */
#include "runtime/base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void weft__fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "weft: %s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

/* SPDX-License-Identifier: MIT */
/*
 * Fail - the assertions of the code under test are violations of the model.
 */
#include "runtime/base/assert.h"

#include <stdarg.h>
#include <stdio.h>

#include "tests/model/engine.h"

void weft__panic(const char *file, int line, const char *format, ...)
{
	char sentence[160];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	engine_violation(NULL, "%s (%s:%d)", sentence, file, line);
}

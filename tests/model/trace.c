/* SPDX-License-Identifier: MIT */
/*
 * Trace - prints the schedule of one execution, for people.
 *
 * An execution is printed when it ends with a violation, or is replayed.  Each
 * operation is a line: the thread, the operation, the location and its value,
 * the order, and the place in the source.  A location is printed as the name
 * that model_name() gave it, or one less than 256 bytes below it, and otherwise
 * as an address.
 */
#include "tests/model/engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void model_name(const volatile void *p, const char *name)
{
	if (engine.names_n < NAMES_MAX)
		engine.names[engine.names_n++] =
			(struct name){ (uintptr_t)p, name };
}

/* The name of the address, or the nearest less than 256 bytes below it. */
static const struct name *name_find(uintptr_t address)
{
	const struct name *best = NULL;

	for (unsigned i = 0; i < engine.names_n; i++) {
		const struct name *name = &engine.names[i];

		if (address - name->address < 256 &&
		    (!best || best->address < name->address))
			best = name;
	}
	return best;
}

/* For messages; valid during three more calls. */
const char *trace_name(uintptr_t address)
{
	static char texts[4][64];
	static unsigned next;
	const struct name *name = name_find(address);
	char *text;

	if (name && name->address == address)
		return name->text;
	next = (next + 1) % 4;
	text = texts[next];
	if (name)
		snprintf(text, sizeof(texts[0]), "%s+%u", name->text,
			 (unsigned)(address - name->address));
	else
		snprintf(text, sizeof(texts[0]), "0x%" PRIxPTR, address);
	return text;
}

/* Large values are addresses, perhaps of something that has a name. */
static void value_print(char *text, size_t size, uint64_t value)
{
	const struct name *name = name_find((uintptr_t)value);

	if (name && name->address == value)
		snprintf(text, size, "&%s", name->text);
	else if (value < 100000)
		snprintf(text, size, "%" PRIu64, value);
	else
		snprintf(text, size, "0x%" PRIx64, value);
}

/* The last two parts of the path suffice to find a line. */
static const char *where_short(const char *where)
{
	const char *cut = where;
	unsigned slashes = 0;

	for (const char *at = where + strlen(where); at > where; at--)
		if (*at == '/' && ++slashes == 2) {
			cut = at + 1;
			break;
		}
	return cut;
}

void trace_line(const char *format, ...)
{
	const struct thread *thread = thread_current();
	char text[160];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "  T%u  %-52s %s\n", engine.current, text,
		thread->where ? where_short(thread->where) : "");
}

void trace_operation(const char *what, const struct location *location,
		     const struct store *store, int order)
{
	static const char *const orders[] = {
		[MODEL_RELAXED] = "relaxed",
		[MODEL_ACQUIRE] = "acquire",
		[MODEL_RELEASE] = "release",
		[MODEL_ACQ_REL] = "acq_rel",
		[MODEL_SEQ_CST] = "seq_cst",
	};
	unsigned newer = location->stores_n - 1u -
			 (unsigned)(store - location->stores);
	char age[32] = "";
	char value[32];

	value_print(value, sizeof(value), store->value);
	if (newer > 0)
		snprintf(age, sizeof(age), "  (%u behind)", newer);
	trace_line("%-9s %s = %s  %s%s", what, trace_name(location->address),
		   value, orders[order], age);
}

void trace_begin(void)
{
	engine.tracing = true;
}

void trace_end(void)
{
	engine.tracing = false;
	if (engine.outcome == VIOLATED)
		fprintf(stderr, "  T%u  violation: %s\n", engine.current,
			engine.result->text);
}

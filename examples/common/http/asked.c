/* SPDX-License-Identifier: MIT */
#include "asked.h"

static const struct known {
	const char *name;
	size_t offset;
	unsigned lines;
} known_fields[] = {
	{ "range", offsetof(struct asked, range), 1 },
	{ "if-range", offsetof(struct asked, if_range), 1 },
	{ "if-match", offsetof(struct asked, if_match), ASKED_LINES },
	{ "if-none-match", offsetof(struct asked, if_none_match), ASKED_LINES },
	{ "if-modified-since", offsetof(struct asked, if_modified_since), 1 },
	{ "if-unmodified-since", offsetof(struct asked, if_unmodified_since),
	  1 },
};

static struct span *next_line(struct asked *asked, const struct known *known)
{
	struct span *line = (struct span *)((char *)asked + known->offset);
	struct span *last = line + known->lines - 1;

	while (line < last && line->at)
		line++;
	return line;
}

struct span *asked_field(struct asked *asked, struct span name)
{
	size_t count = sizeof(known_fields) / sizeof(known_fields[0]);

	for (const struct known *known = known_fields;
	     known < known_fields + count; known++)
		if (span_equals_nocase(name, known->name))
			return next_line(asked, known);
	return NULL;
}

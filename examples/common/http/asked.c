/* SPDX-License-Identifier: MIT */
#include "asked.h"

static const struct known {
	const char *name;
	size_t offset;
} known_fields[] = {
	{ "range", offsetof(struct asked, range) },
	{ "if-range", offsetof(struct asked, if_range) },
	{ "if-none-match", offsetof(struct asked, if_none_match) },
	{ "if-modified-since", offsetof(struct asked, if_modified_since) },
};

struct span *asked_field(struct asked *asked, struct span name)
{
	size_t count = sizeof(known_fields) / sizeof(known_fields[0]);

	for (const struct known *known = known_fields;
	     known < known_fields + count; known++)
		if (span_equals_nocase(name, known->name))
			return (struct span *)((char *)asked + known->offset);
	return NULL;
}

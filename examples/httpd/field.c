/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "field.h"

static const struct known {
	const char *name;
	size_t offset;
} known_fields[] = {
	{ "host", offsetof(struct request, host) },
	{ "range", offsetof(struct request, range) },
	{ "if-range", offsetof(struct request, if_range) },
	{ "if-none-match", offsetof(struct request, if_none_match) },
	{ "if-modified-since", offsetof(struct request, if_modified_since) },
	{ "expect", offsetof(struct request, expect) },
	{ "transfer-encoding", offsetof(struct request, transfer_encoding) },
};

struct span *field_find(struct request *request, struct span name)
{
	size_t count = sizeof(known_fields) / sizeof(known_fields[0]);

	for (const struct known *known = known_fields;
	     known < known_fields + count; known++)
		if (span_equals_nocase(name, known->name))
			return (struct span *)((char *)request + known->offset);
	return NULL;
}

struct span field_trim(struct span value)
{
	while (value.bytes > 0 && (value.at[value.bytes - 1] == ' ' ||
				   value.at[value.bytes - 1] == '\t'))
		value.bytes--;
	return value;
}

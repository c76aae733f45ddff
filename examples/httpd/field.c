/* SPDX-License-Identifier: MIT */
#include "field.h"

struct span *field_find(struct request *request, struct span name)
{
	if (span_equals_nocase(name, "host"))
		return &request->host;
	if (span_equals_nocase(name, "expect"))
		return &request->expect;
	if (span_equals_nocase(name, "transfer-encoding"))
		return &request->transfer_encoding;
	return asked_field(&request->asked, name);
}

struct span field_trim(struct span value)
{
	while (value.bytes > 0 && (value.at[value.bytes - 1] == ' ' ||
				   value.at[value.bytes - 1] == '\t'))
		value.bytes--;
	return value;
}

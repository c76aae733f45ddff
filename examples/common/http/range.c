/* SPDX-License-Identifier: MIT */
/*
 * One byte range: "bytes=first-last", "bytes=first-" or "bytes=-suffix".
 *
 * A server may ignore any Range (RFC 9110, 14.2).  This server ignores a Range
 * with several ranges: few clients send one, and the answer to many small
 * overlapping ranges is a known way to exhaust a server.
 */
#include <ctype.h>

#include "range.h"

static bool take(struct span *span, const char *prefix)
{
	struct span start = { span->at, strlen(prefix) };

	if (span->bytes < start.bytes || !span_equals_nocase(start, prefix))
		return false;
	span->at += start.bytes;
	span->bytes -= start.bytes;
	return true;
}

/* Returns false if there is no digit.  A number that is too large becomes the
 * largest, which lies after the end of every file. */
static bool take_number(struct span *span, uint64_t *ret_number)
{
	bool found = false;

	*ret_number = 0;
	for (; span->bytes > 0 && isdigit((unsigned char)*span->at);
	     span->at++, span->bytes--) {
		uint64_t digit = (uint64_t)(*span->at - '0');

		found = true;
		*ret_number = *ret_number > (UINT64_MAX - digit) / 10 ?
				      UINT64_MAX :
				      *ret_number * 10 + digit;
	}
	return found;
}

enum range_kind range_parse(struct span header, uint64_t total,
			    struct range *ret_range)
{
	uint64_t first, last;
	bool has_first, has_last;

	if (!take(&header, "bytes="))
		return RANGE_NONE;
	has_first = take_number(&header, &first);
	if (!take(&header, "-"))
		return RANGE_NONE;
	has_last = take_number(&header, &last);
	if (header.bytes > 0 || (!has_first && !has_last) ||
	    (has_first && has_last && last < first))
		return RANGE_NONE;
	if (!has_first) {
		first = last < total ? total - last : 0;
		first = last == 0 ? total : first;
		has_last = false;
	}
	if (first >= total)
		return RANGE_UNSATISFIABLE;
	ret_range->first = first;
	ret_range->bytes = total - first;
	if (has_last && last - first < ret_range->bytes)
		ret_range->bytes = last - first + 1;
	return RANGE_PART;
}

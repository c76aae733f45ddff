/* SPDX-License-Identifier: MIT */
/*
 * Numbers and escapes without printf(), which would cost as much as a system
 * call.
 */
#include <ctype.h>
#include <strings.h>

#include "text.h"

void text_put_number(struct text *text, uint64_t number)
{
	char digits[20];
	char *end = digits + sizeof(digits);
	char *at = end;

	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	text_put_bytes(text, at, (size_t)(end - at));
}

void text_put_url(struct text *text, const char *path)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;
		char escape[3] = { '%', hex[c >> 4], hex[c & 15] };

		if (c < 0x80 && (isalnum(c) || strchr("-._~/", c)))
			text_put_bytes(text, path, 1);
		else
			text_put_bytes(text, escape, sizeof(escape));
	}
}

void text_put_html(struct text *text, const char *string)
{
	for (; *string; string++) {
		switch (*string) {
		case '&':
			text_put(text, "&amp;");
			break;
		case '<':
			text_put(text, "&lt;");
			break;
		case '>':
			text_put(text, "&gt;");
			break;
		case '"':
			text_put(text, "&quot;");
			break;
		case '\'':
			text_put(text, "&#39;");
			break;
		default:
			text_put_bytes(text, string, 1);
		}
	}
}

bool span_equals_nocase(struct span span, const char *string)
{
	return span.bytes == strlen(string) &&
	       strncasecmp(span.at, string, span.bytes) == 0;
}

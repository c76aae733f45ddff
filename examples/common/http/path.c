/* SPDX-License-Identifier: MIT */
/*
 * The path of a URL: decoded once, normalised.
 *
 * Escapes are decoded before dot segments are searched, so %2e%2e is "..".  An
 * escaped slash is not a separator but part of a name, and no file has such a
 * name (404); a NUL would cut the path short (400); a backslash is an ordinary
 * byte.  A ".." that would leave the root is refused (403).  This check is a
 * courtesy to clients; the protection is RESOLVE_BENEATH in file.c.
 */
#include "path.h"
#include "status.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes a byte of a name from the span, and decodes an escape.  Returns 0 or a
 * status. */
static int take_byte(struct span *raw, char *ret_byte)
{
	int high, low;

	if (*raw->at != '%') {
		*ret_byte = *raw->at++;
		raw->bytes--;
		return 0;
	}
	high = raw->bytes < 3 ? -1 : hex_digit(raw->at[1]);
	low = raw->bytes < 3 ? -1 : hex_digit(raw->at[2]);
	if (high < 0 || low < 0 || (high | low) == 0)
		return STATUS_BAD_REQUEST;
	*ret_byte = (char)(high << 4 | low);
	raw->at += 3;
	raw->bytes -= 3;
	return *ret_byte == '/' ? STATUS_NOT_FOUND : 0;
}

/* Ends the segment in [start, end).  An empty segment, a "." and a ".." are
 * removed, and a ".." removes the segment before it, too.  Returns the new end,
 * or NULL if that would leave the root. */
static char *end_segment(const char *path, char *start, char *end)
{
	struct span segment = { start, (size_t)(end - start) };

	if (segment.bytes == 0 || span_equals(segment, "."))
		return start;
	if (!span_equals(segment, ".."))
		return end;
	if (start == path)
		return NULL;
	for (start--; start > path && start[-1] != '/'; start--)
		;
	return start;
}

/* Every segment that remains ends in a slash, except for the name of a file. */
int path_from_url(struct span raw, char path[PATH_BYTES])
{
	char *start = path, *at = path;
	const char *limit = path + PATH_BYTES - sizeof("./" PATH_INDEX);
	int status;

	if (raw.bytes == 0 || *raw.at != '/')
		return STATUS_BAD_REQUEST;
	for (; raw.bytes > 0; start = at) {
		for (; raw.bytes > 0 && *raw.at != '/'; at++) {
			if (at >= limit)
				return STATUS_URI_TOO_LONG;
			status = take_byte(&raw, at);
			if (status)
				return status;
		}
		at = end_segment(path, start, at);
		if (!at)
			return STATUS_FORBIDDEN;
		if (raw.bytes > 0 && at > start)
			*at++ = '/';
		raw.at += raw.bytes > 0;
		raw.bytes -= raw.bytes > 0;
	}
	if (at == path) {
		*at++ = '.';
		*at++ = '/';
	}
	*at = '\0';
	return 0;
}

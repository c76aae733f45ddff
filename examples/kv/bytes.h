/* SPDX-License-Identifier: MIT */
/*
 * Bytes that belong to other code, of any value, not terminated.
 */
#ifndef KV_BYTES_H
#define KV_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct bytes {
	const char *at;
	size_t count;
};

static inline bool bytes_are(struct bytes bytes, const char *string)
{
	return bytes.count == strlen(string) &&
	       strncasecmp(bytes.at, string, bytes.count) == 0;
}

/* A decimal number as Redis reads one: no space, no "+", no zero in front.
 * False if it is none, or does not fit. */
bool bytes_number(struct bytes bytes, int64_t *ret_number);

enum { NUMBER_BYTES = 20 }; /* of "-9223372036854775808" */

/* Writes the number to text, which has NUMBER_BYTES, and returns its length. */
size_t number_print(int64_t number, char *text);

#endif

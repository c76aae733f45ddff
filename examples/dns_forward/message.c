/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "message.h"

enum {
	QUESTIONS = 4, /* where the header has the counts */
	ANSWERS = 6,
	LABEL_MAX = 63,
	NAME_MAX_BYTES = 255,
	SERVER_FAILED = 2,
};

size_t message_query_end(const uint8_t *message, size_t bytes)
{
	size_t at = HEADER_BYTES;

	/* A query, of the usual kind, with one question and no records but
	 * those of EDNS. */
	if (bytes < HEADER_BYTES || message[2] & 0xf8 ||
	    message_number(message + QUESTIONS) != 1 ||
	    message_number(message + ANSWERS) != 0 ||
	    message_number(message + ANSWERS + 2) != 0)
		return 0;
	while (at < bytes && message[at]) {
		if (message[at] > LABEL_MAX)
			return 0;
		at += 1u + message[at];
	}
	/* Its end, type and class. */
	at += 5;
	return at <= bytes && at - 4 - HEADER_BYTES <= NAME_MAX_BYTES ? at : 0;
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* The length of a label is no letter. */
void message_fold(uint8_t *message, size_t end)
{
	for (size_t at = HEADER_BYTES; at < end - 4; at++)
		message[at] = lower(message[at]);
}

bool message_answers(const uint8_t *answer, size_t bytes, const uint8_t *query,
		     size_t query_end)
{
	if (bytes < query_end || !(answer[2] & 0x80) ||
	    memcmp(answer, query, 2) != 0 ||
	    message_number(answer + QUESTIONS) != 1)
		return false;
	for (size_t at = HEADER_BYTES; at < query_end - 4; at++)
		if (lower(answer[at]) != lower(query[at]))
			return false;
	return memcmp(answer + query_end - 4, query + query_end - 4, 4) == 0;
}

size_t message_fail(uint8_t *query, size_t end)
{
	query[2] |= 0x80;
	query[3] = 0x80 | SERVER_FAILED;
	memset(query + ANSWERS, 0, 6);
	return end;
}

/* SPDX-License-Identifier: MIT */
/*
 * The messages of DNS (RFC 1035), as far as a forwarder looks into them: the
 * question, and the time to live of each record.  Nothing is read beyond
 * `bytes`, whatever a message says.
 */
#ifndef DNS_FORWARD_MESSAGE_H
#define DNS_FORWARD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HEADER_BYTES = 12,
	QUERY_BYTES_MAX = 512,
	ANSWER_BYTES_MAX = 4096, /* over UDP */
};

/* The place behind the only question of a query; 0 if it is no such query. */
size_t message_query_end(const uint8_t *message, size_t bytes);

/* Writes the name of the question in lower case.  `end` is its
 * message_query_end(). */
void message_fold(uint8_t *message, size_t end);

/* Is it the answer to this query, also by its ID? */
bool message_answers(const uint8_t *answer, size_t bytes, const uint8_t *query,
		     size_t query_end);

/* The seconds for which an answer may be kept: 0 if it is a failure, cut off,
 * or cannot be read in full.  `end` is that of its question. */
uint32_t message_ttl(const uint8_t *answer, size_t bytes, size_t end);

/* Lowers the time to live of each record of an answer that has one. */
void message_age(uint8_t *answer, size_t bytes, size_t end, uint32_t seconds);

/* Makes a query the answer that its server failed.  Returns its bytes. */
size_t message_fail(uint8_t *query, size_t end);

static inline unsigned message_number(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

#endif

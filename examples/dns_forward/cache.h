/* SPDX-License-Identifier: MIT */
/*
 * Answers that are kept.  A query finds the answer of an earlier one that was
 * the same in all but its ID and the case of its letters.  There is one place
 * for each value of a part of a hash, so their number is bounded.
 */
#ifndef DNS_FORWARD_CACHE_H
#define DNS_FORWARD_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct cache;

/* NULL without memory. */
struct cache *cache_new(void);
void cache_free(struct cache *cache);

/* Makes a query its answer, if that is there: returns the answer's bytes, or 0.
 * query has room for ANSWER_BYTES_MAX bytes; end: its message_query_end(). */
size_t cache_get(struct cache *cache, uint8_t *query, size_t bytes, size_t end);

/* Keeps the answer to a query for its time to live, if it has one. */
void cache_put(struct cache *cache, const uint8_t *query, size_t query_bytes,
	       size_t end, const uint8_t *answer, size_t answer_bytes);

#endif

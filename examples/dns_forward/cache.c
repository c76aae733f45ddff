/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "cache.h"
#include "message.h"

enum { PLACES = 1 << 16, LOCKS = 64 };

struct entry {
	weft_nsec stored_ns, expires_ns;
	size_t key_bytes, answer_bytes;
	uint8_t data[]; /* the key, then the answer */
};

struct cache {
	struct weft_mutex locks[LOCKS];
	struct entry *places[PLACES];
};

struct key {
	size_t bytes;
	uint32_t hash;
	uint8_t data[QUERY_BYTES_MAX];
};

/* All of a query but its ID. */
static void key_make(struct key *key, const uint8_t *query, size_t bytes,
		     size_t end)
{
	memcpy(key->data, query, bytes);
	message_fold(key->data, end);
	memset(key->data, 0, 2);
	key->bytes = bytes;
	key->hash = 2166136261u;
	for (size_t i = 0; i < bytes; i++)
		key->hash = (key->hash ^ key->data[i]) * 16777619u;
	key->hash ^= key->hash >> 16;
}

struct cache *cache_new(void)
{
	return calloc(1, sizeof(struct cache));
}

void cache_free(struct cache *cache)
{
	for (int i = 0; cache && i < PLACES; i++)
		free(cache->places[i]);
	free(cache);
}

/* The name keeps the letters in which it was asked for. */
static size_t entry_get(const struct entry *entry, uint8_t *query, size_t end)
{
	const uint8_t *answer = entry->data + entry->key_bytes;
	weft_nsec age_ns = weft_now() - entry->stored_ns;

	memcpy(query + 2, answer + 2, HEADER_BYTES - 2);
	memcpy(query + end, answer + end, entry->answer_bytes - end);
	message_age(query, entry->answer_bytes, end,
		    (uint32_t)(age_ns / WEFT_SEC(1)));
	return entry->answer_bytes;
}

size_t cache_get(struct cache *cache, uint8_t *query, size_t bytes, size_t end)
{
	struct entry *entry;
	struct key key;
	size_t found = 0;

	key_make(&key, query, bytes, end);
	if (weft_mutex_lock(&cache->locks[key.hash % LOCKS]) < 0)
		return 0;
	entry = cache->places[key.hash % PLACES];
	if (entry && entry->key_bytes == key.bytes &&
	    memcmp(entry->data, key.data, key.bytes) == 0 &&
	    weft_now() < entry->expires_ns)
		found = entry_get(entry, query, end);
	weft_mutex_unlock(&cache->locks[key.hash % LOCKS]);
	return found;
}

void cache_put(struct cache *cache, const uint8_t *query, size_t query_bytes,
	       size_t end, const uint8_t *answer, size_t answer_bytes)
{
	uint32_t ttl = message_ttl(answer, answer_bytes, end);
	struct entry *entry, *old;
	struct key key;

	if (ttl == 0)
		return;
	key_make(&key, query, query_bytes, end);
	entry = malloc(sizeof(*entry) + query_bytes + answer_bytes);
	if (!entry)
		return;
	entry->stored_ns = weft_now();
	entry->expires_ns = entry->stored_ns + WEFT_SEC(ttl);
	entry->key_bytes = query_bytes;
	entry->answer_bytes = answer_bytes;
	memcpy(entry->data, key.data, query_bytes);
	memcpy(entry->data + query_bytes, answer, answer_bytes);
	old = entry;
	if (weft_mutex_lock(&cache->locks[key.hash % LOCKS]) == 0) {
		old = cache->places[key.hash % PLACES];
		cache->places[key.hash % PLACES] = entry;
		weft_mutex_unlock(&cache->locks[key.hash % LOCKS]);
	}
	free(old);
}

/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "entry.h"

struct entry *entry_new(struct key key, struct bytes value,
			weft_nsec expires_ns)
{
	struct entry *entry =
		malloc(sizeof(*entry) + key.bytes.count + value.count);

	if (!entry)
		return NULL;
	entry->next = NULL;
	entry->expires_ns = expires_ns;
	entry->hash = key.hash;
	atomic_init(&entry->holders, 1);
	entry->key_bytes = (uint32_t)key.bytes.count;
	entry->value_bytes = (uint32_t)value.count;
	memcpy(entry->text, key.bytes.at, key.bytes.count);
	memcpy(entry->text + key.bytes.count, value.at, value.count);
	return entry;
}

void entry_free(struct entry *entry)
{
	free(entry);
}

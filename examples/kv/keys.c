/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "commands.h"

static bool delete (struct call *call, unsigned index)
{
	struct key key = call_key(call, index);
	struct shard *shard = table_lock(call->table, key);
	struct entry *entry = map_find(&shard->map, key);

	if (entry)
		map_remove(&shard->map, entry);
	shard_unlock(shard);
	entry_drop(entry);
	return entry;
}

static bool exists(struct call *call, unsigned index)
{
	struct key key = call_key(call, index);
	struct shard *shard = table_lock(call->table, key);
	bool there = map_find(&shard->map, key);

	shard_unlock(shard);
	return there;
}

/* Answers for how many of the keys it is true. */
static int count(struct call *call, bool (*test)(struct call *, unsigned))
{
	int64_t number = 0;

	for (unsigned i = 1; i < call->request->count; i++)
		number += test(call, i);
	return answer_number(call->stream, number);
}

int command_del(struct call *call)
{
	return count(call, delete);
}

int command_exists(struct call *call)
{
	return count(call, exists);
}

int command_dbsize(struct call *call)
{
	return answer_number(call->stream, (int64_t)table_count(call->table));
}

int command_flushall(struct call *call)
{
	int r = table_clear(call->table);

	if (r == -ENOMEM)
		return answer_no_memory(call->stream);
	return r == 0 ? answer_ok(call->stream) : r;
}

/* SPDX-License-Identifier: MIT */
#include "commands.h"

/* The value is sent without the lock, for a client may be slow to take it. */
static int answer_value(struct call *call, unsigned index)
{
	struct key key = call_key(call, index);
	struct shard *shard = table_lock(call->table, key);
	struct entry *entry = map_find(&shard->map, key);
	int r;

	if (entry)
		entry_hold(entry);
	shard_unlock(shard);
	if (!entry)
		return answer_nil(call->stream);
	r = answer_bytes(call->stream, entry_value(entry));
	entry_drop(entry);
	return r;
}

int command_get(struct call *call)
{
	return answer_value(call, 1);
}

int command_mget(struct call *call)
{
	unsigned count = call->request->count;
	int r = answer_array(call->stream, count - 1);

	for (unsigned i = 1; i < count && r == 0; i++)
		r = answer_value(call, i);
	return r;
}

static bool put(struct call *call, unsigned index)
{
	struct key key = call_key(call, index);
	struct entry *old,
		*entry = entry_new(key, call_arg(call, index + 1), WEFT_NEVER);
	struct shard *shard;

	if (!entry)
		return false;
	shard = table_lock(call->table, key);
	old = map_put(&shard->map, entry);
	shard_unlock(shard);
	entry_drop(old);
	return true;
}

int command_mset(struct call *call)
{
	unsigned count = call->request->count;

	if (count % 2 == 0)
		return answer_error(
			call->stream,
			"ERR wrong number of arguments for 'mset' command");
	for (unsigned i = 1; i < count; i += 2)
		if (!put(call, i))
			return answer_no_memory(call->stream);
	return answer_ok(call->stream);
}

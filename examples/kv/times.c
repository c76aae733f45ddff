/* SPDX-License-Identifier: MIT */
#include "times.h"
#include "commands.h"

bool time_after(int64_t number, int64_t unit_ns, weft_nsec *ret_time_ns)
{
	int64_t time_ns;

	if (__builtin_mul_overflow(number, unit_ns, &time_ns) ||
	    __builtin_add_overflow(time_ns, (int64_t)weft_now(), &time_ns) ||
	    time_ns >= (int64_t)WEFT_NEVER)
		return false;
	*ret_time_ns = time_ns < 0 ? 0 : (weft_nsec)time_ns;
	return true;
}

/* A time that has passed removes the key. */
static int expire(struct call *call, int64_t unit_ns, const char *name)
{
	struct key key = call_key(call, 1);
	struct shard *shard;
	struct entry *entry;
	weft_nsec time_ns;
	int64_t number;

	if (!bytes_number(call_arg(call, 2), &number))
		return answer_error(
			call->stream,
			"ERR value is not an integer or out of range");
	if (!time_after(number, unit_ns, &time_ns))
		return answer_error(call->stream,
				    "ERR invalid expire time in '%s' command",
				    name);
	shard = table_lock(call->table, key);
	entry = map_find(&shard->map, key);
	if (entry) {
		map_expire(&shard->map, entry, time_ns);
		map_find(&shard->map, key);
	}
	shard_unlock(shard);
	return answer_number(call->stream, entry != NULL);
}

/* Answers -2 if there is no such key, -1 if it stays. */
static int answer_rest(struct call *call, int64_t unit_ns)
{
	struct key key = call_key(call, 1);
	struct shard *shard = table_lock(call->table, key);
	struct entry *entry = map_find(&shard->map, key);
	weft_nsec time_ns = entry ? entry->expires_ns : 0;
	int64_t rest_ns;

	shard_unlock(shard);
	if (!entry || time_ns == WEFT_NEVER)
		return answer_number(call->stream, entry ? -1 : -2);
	rest_ns = (int64_t)(time_ns - weft_now());
	return answer_number(call->stream,
			     rest_ns < 0 ? 0 :
					   (rest_ns + unit_ns / 2) / unit_ns);
}

int command_expire(struct call *call)
{
	return expire(call, SECOND_NS, "expire");
}

int command_pexpire(struct call *call)
{
	return expire(call, MILLISECOND_NS, "pexpire");
}

int command_ttl(struct call *call)
{
	return answer_rest(call, SECOND_NS);
}

int command_pttl(struct call *call)
{
	return answer_rest(call, MILLISECOND_NS);
}

/* SPDX-License-Identifier: MIT */
#include "commands.h"

/* The number of an entry, 0 if there is none.  Returns an error or NULL. */
static const char *read_number(const struct entry *entry, int64_t *ret_number)
{
	*ret_number = 0;
	if (entry && !bytes_number(entry_value(entry), ret_number))
		return "ERR value is not an integer or out of range";
	return NULL;
}

/* Under the lock of the shard.  Returns an error or NULL, and what to drop. */
static const char *add_to(struct map *map, struct key key, int64_t by,
			  int64_t *ret_number, struct entry **ret_old)
{
	struct entry *old = map_find(map, key), *entry;
	const char *error = read_number(old, ret_number);
	char text[NUMBER_BYTES];

	if (error)
		return error;
	if (__builtin_add_overflow(*ret_number, by, ret_number))
		return "ERR increment or decrement would overflow";
	entry = entry_new(
		key, (struct bytes){ text, number_print(*ret_number, text) },
		old ? old->expires_ns : WEFT_NEVER);
	if (!entry)
		return NO_MEMORY;
	*ret_old = map_put(map, entry);
	return NULL;
}

static int add(struct call *call, int64_t by)
{
	struct key key = call_key(call, 1);
	struct shard *shard = table_lock(call->table, key);
	struct entry *old = NULL;
	int64_t number;
	const char *error = add_to(&shard->map, key, by, &number, &old);

	shard_unlock(shard);
	entry_drop(old);
	return error ? answer_error(call->stream, "%s", error) :
		       answer_number(call->stream, number);
}

int command_incr(struct call *call)
{
	return add(call, 1);
}

int command_decr(struct call *call)
{
	return add(call, -1);
}

/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "times.h"

/* The words behind the value. */
struct options {
	bool only_new; /* NX */
	bool only_old; /* XX */
	const char *error;
	weft_nsec expires_ns; /* EX, PX */
};

static const char *parse_time(struct options *options, struct bytes text,
			      int64_t unit_ns)
{
	int64_t number;

	if (options->expires_ns != WEFT_NEVER)
		return "ERR syntax error";
	if (!bytes_number(text, &number))
		return "ERR value is not an integer or out of range";
	if (number <= 0 || !time_after(number, unit_ns, &options->expires_ns))
		return "ERR invalid expire time in 'set' command";
	return NULL;
}

/* Returns NULL, or an error for the client. */
static const char *parse(struct options *options, const struct call *call)
{
	const char *error = NULL;
	unsigned count = call->request->count;

	for (unsigned i = 3; i < count && !error; i++) {
		struct bytes word = call_arg(call, i);

		if (bytes_are(word, "NX"))
			options->only_new = true;
		else if (bytes_are(word, "XX"))
			options->only_old = true;
		else if (bytes_are(word, "EX") && i + 1 < count)
			error = parse_time(options, call_arg(call, ++i),
					   SECOND_NS);
		else if (bytes_are(word, "PX") && i + 1 < count)
			error = parse_time(options, call_arg(call, ++i),
					   MILLISECOND_NS);
		else
			error = "ERR syntax error";
	}
	if (!error && options->only_new && options->only_old)
		error = "ERR syntax error";
	return error;
}

int command_set(struct call *call)
{
	struct options options = { .expires_ns = WEFT_NEVER };
	const char *error = parse(&options, call);
	struct key key = call_key(call, 1);
	struct entry *entry, *old;
	struct shard *shard;
	bool done;

	if (error)
		return answer_error(call->stream, "%s", error);
	entry = entry_new(key, call_arg(call, 2), options.expires_ns);
	if (!entry)
		return answer_no_memory(call->stream);
	shard = table_lock(call->table, key);
	old = options.only_new || options.only_old ?
		      map_find(&shard->map, key) :
		      NULL;
	done = old ? !options.only_new : !options.only_old;
	/* The new entry is put, and the old one dropped, or the new one. */
	old = done ? map_put(&shard->map, entry) : entry;
	shard_unlock(shard);
	entry_drop(old);
	return done ? answer_ok(call->stream) : answer_nil(call->stream);
}

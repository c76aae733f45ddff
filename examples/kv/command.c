/* SPDX-License-Identifier: MIT */
#include "command.h"
#include "commands.h"

enum { NAME_BYTES = 8, ANY = ARGS_MAX };

struct command {
	char name[NAME_BYTES]; /* in small letters, padded with 0 */
	unsigned args_min;     /* with the name */
	unsigned args_max;
	int (*run)(struct call *call);
};

/* The frequent ones first. */
static const struct command commands[] = {
	{ "get", 2, 2, command_get },
	{ "set", 3, ANY, command_set },
	{ "incr", 2, 2, command_incr },
	{ "decr", 2, 2, command_decr },
	{ "del", 2, ANY, command_del },
	{ "exists", 2, ANY, command_exists },
	{ "mget", 2, ANY, command_mget },
	{ "mset", 3, ANY, command_mset },
	{ "expire", 3, 3, command_expire },
	{ "pexpire", 3, 3, command_pexpire },
	{ "ttl", 2, 2, command_ttl },
	{ "pttl", 2, 2, command_pttl },
	{ "ping", 1, 2, command_ping },
	{ "echo", 2, 2, command_echo },
	{ "dbsize", 1, 1, command_dbsize },
	{ "flushall", 1, 2, command_flushall },
	{ "command", 1, ANY, command_command },
	{ "config", 2, ANY, command_config },
	{ "quit", 1, ANY, command_quit },
};

static const struct command *find(struct bytes name)
{
	char small[NAME_BYTES] = { 0 };

	if (name.count > NAME_BYTES)
		return NULL;
	/* A letter is small with this bit; others do not become letters. */
	for (size_t i = 0; i < name.count; i++)
		small[i] = (char)(name.at[i] | 0x20);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (memcmp(small, commands[i].name, NAME_BYTES) == 0)
			return &commands[i];
	return NULL;
}

int call_run(struct call *call)
{
	unsigned count = call->request->count;
	const struct command *command;
	struct bytes name;

	if (count == 0)
		return 0;
	name = call_arg(call, 0);
	command = find(name);
	if (!command)
		return answer_error(call->stream, "ERR unknown command '%.*s'",
				    name.count < 64 ? (int)name.count : 64,
				    name.at);
	if (count < command->args_min || count > command->args_max)
		return answer_error(
			call->stream,
			"ERR wrong number of arguments for '%.*s' command",
			NAME_BYTES, command->name);
	return command->run(call);
}

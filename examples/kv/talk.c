/* SPDX-License-Identifier: MIT */
/*
 * Commands that touch no key.  redis-cli and redis-benchmark ask some of them
 * first, and need no more than this for an answer.
 */
#include "commands.h"

int command_ping(struct call *call)
{
	return call->request->count == 1 ?
		       ANSWER(call->stream, "+PONG\r\n") :
		       answer_bytes(call->stream, call_arg(call, 1));
}

int command_echo(struct call *call)
{
	return answer_bytes(call->stream, call_arg(call, 1));
}

int command_quit(struct call *call)
{
	call->quits = true;
	return answer_ok(call->stream);
}

/* The descriptions of commands: none. */
int command_command(struct call *call)
{
	return answer_array(call->stream, 0);
}

/* Nothing is ever saved. */
int command_config(struct call *call)
{
	unsigned count = call->request->count;
	struct bytes name = call_arg(call, count - 1);

	if (count != 3 || !bytes_are(call_arg(call, 1), "GET"))
		return answer_error(call->stream, "ERR only CONFIG GET");
	if (bytes_are(name, "save"))
		return ANSWER(call->stream, "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
	if (bytes_are(name, "appendonly"))
		return ANSWER(call->stream,
			      "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
	return answer_array(call->stream, 0);
}

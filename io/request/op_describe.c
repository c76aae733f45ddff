/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdio.h>

#include "io/request/op.h"

/* The text before "descriptor 5". */
static const char *const words[256] = {
	[WEFT__OPCODE_READV] = "to read from",
	[WEFT__OPCODE_WRITEV] = "to write to",
	[WEFT__OPCODE_SENDMSG] = "to send to",
	[WEFT__OPCODE_RECVMSG] = "to receive from",
	[WEFT__OPCODE_ACCEPT] = "to accept from",
	[WEFT__OPCODE_CONNECT] = "to connect",
	[WEFT__OPCODE_CLOSE] = "to close",
	[WEFT__OPCODE_READ] = "to read from",
	[WEFT__OPCODE_WRITE] = "to write to",
	[WEFT__OPCODE_SEND] = "to send to",
	[WEFT__OPCODE_RECV] = "to receive from",
	[WEFT__OP_SAYS_DRAIN] = "to drain and close",
};

/* Operations on a path, for which the descriptor says little. */
static const char *describe_path(unsigned opcode)
{
	switch (opcode) {
	case WEFT__OPCODE_OPENAT:
	case WEFT__OPCODE_OPENAT2:
		return "to open a file";
	case WEFT__OPCODE_STATX:
		return "for the status of a file";
	case WEFT__OPCODE_UNLINKAT:
		return "to remove a name";
	case WEFT__OPCODE_RENAMEAT:
		return "to rename a file";
	case WEFT__OPCODE_LINKAT:
	case WEFT__OPCODE_SYMLINKAT:
		return "to link a file";
	case WEFT__OPCODE_MKDIRAT:
		return "to make a directory";
	default:
		return NULL;
	}
}

static const char *describe_poll(unsigned events)
{
	switch (events & (POLLIN | POLLOUT)) {
	case POLLIN:
		return "to read from";
	case POLLOUT:
		return "to write to";
	default:
		return "to poll";
	}
}

int weft__op_describe(uint64_t number, char *ret_text, size_t bytes)
{
	unsigned opcode = (unsigned)(number >> 5) & 0xff;
	unsigned events = (unsigned)(number >> 13) & 0xffff;
	const char *before = words[opcode];
	int fd = (int)(number >> 29);

	if (describe_path(opcode))
		return snprintf(ret_text, bytes, "%s", describe_path(opcode));
	if (opcode == WEFT__OPCODE_POLL)
		before = describe_poll(events);
	if (!before)
		return snprintf(ret_text, bytes,
				"for operation %u on descriptor %d", opcode,
				fd);
	return snprintf(ret_text, bytes, "%s descriptor %d", before, fd);
}

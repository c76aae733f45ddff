/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdio.h>

#include "io/request/op.h"

/* The text before "descriptor 5". */
static const char *const words[256] = {
	[IORING_OP_READV] = "to read from",
	[IORING_OP_WRITEV] = "to write to",
	[IORING_OP_FSYNC] = "to sync",
	[IORING_OP_SENDMSG] = "to send to",
	[IORING_OP_RECVMSG] = "to receive from",
	[IORING_OP_ACCEPT] = "to accept from",
	[IORING_OP_CONNECT] = "to connect",
	[IORING_OP_CLOSE] = "to close",
	[IORING_OP_READ] = "to read from",
	[IORING_OP_WRITE] = "to write to",
	[IORING_OP_SEND] = "to send to",
	[IORING_OP_RECV] = "to receive from",
	[IORING_OP_SPLICE] = "to splice to",
	[IORING_OP_SHUTDOWN] = "to shut down",
	[WEFT__OP_SAYS_ACCEPT] = "to accept from",
	[WEFT__OP_SAYS_DRAIN] = "to drain and close",
};

/* Operations on a path, for which the descriptor says little. */
static const char *words_path(unsigned opcode)
{
	switch (opcode) {
	case IORING_OP_OPENAT:
	case IORING_OP_OPENAT2:
		return "to open a file";
	case IORING_OP_STATX:
		return "for the status of a file";
	default:
		return NULL;
	}
}

static const char *words_poll(unsigned events)
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

	if (words_path(opcode))
		return snprintf(ret_text, bytes, "%s", words_path(opcode));
	if (opcode == IORING_OP_POLL_ADD)
		before = words_poll(events);
	if (!before)
		return snprintf(ret_text, bytes,
				"for operation %u on descriptor %d", opcode,
				fd);
	return snprintf(ret_text, bytes, "%s descriptor %d", before, fd);
}

/* SPDX-License-Identifier: MIT */
#include "handover.h"

#include <errno.h>
#include <string.h>

#define PATIENCE_NS WEFT_SEC(10)

/* A message of one byte, with room for the descriptors. */
struct message {
	struct msghdr header;
	struct iovec iov;
	char byte;
	union {
		struct cmsghdr first;
		char bytes[CMSG_SPACE(SOCKETS * sizeof(int))];
	} control;
};

static void message_init(struct message *message)
{
	*message = (struct message){ .byte = 's' };
	message->iov = (struct iovec){ &message->byte, 1 };
	message->header = (struct msghdr){
		.msg_iov = &message->iov,
		.msg_iovlen = 1,
		.msg_control = message->control.bytes,
		.msg_controllen = sizeof(message->control.bytes),
	};
}

static int receive_sockets(int old, int ret_sockets[SOCKETS])
{
	const size_t bytes = CMSG_LEN(SOCKETS * sizeof(int));
	struct message message;
	struct cmsghdr *control;
	ssize_t n;

	message_init(&message);
	n = weft_recvmsg(old, &message.header, 0);
	control = n > 0 ? CMSG_FIRSTHDR(&message.header) : NULL;
	if (!control || control->cmsg_len != bytes)
		return n < 0 ? (int)n : -EPROTO;
	memcpy(ret_sockets, CMSG_DATA(control), SOCKETS * sizeof(int));
	return 0;
}

int handover_take(const char *address, int ret_sockets[SOCKETS])
{
	int r = -ETIMEDOUT, old = weft_unix_connect(address, NULL);

	if (old < 0)
		return old == -ENOENT ? -ECONNREFUSED : old;
	WEFT_WITHIN (PATIENCE_NS)
		r = receive_sockets(old, ret_sockets);
	if (r < 0)
		weft_close(old);
	return r < 0 ? r : old;
}

int handover_ready(int old)
{
	int r = weft_write_all(old, "r", 1, NULL);

	weft_close(old);
	return r;
}

static int send_sockets(int next, const int sockets[SOCKETS])
{
	struct message message;
	struct cmsghdr *control;

	message_init(&message);
	control = &message.control.first;
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(SOCKETS * sizeof(int));
	memcpy(CMSG_DATA(control), sockets, SOCKETS * sizeof(int));
	return (int)weft_sendmsg(next, &message.header, 0);
}

int handover_give(int next, const int sockets[SOCKETS])
{
	char ready;
	int r = -ETIMEDOUT;

	WEFT_WITHIN (PATIENCE_NS) {
		r = send_sockets(next, sockets);
		if (r >= 0)
			r = weft_read_all(next, &ready, 1, NULL);
	}
	weft_close(next);
	return r;
}

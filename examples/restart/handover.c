/* SPDX-License-Identifier: MIT */
#include "handover.h"

#include <errno.h>

#define PATIENCE_NS WEFT_SEC(10)

static int receive_sockets(int old, int ret_sockets[SOCKETS])
{
	int count = 0;
	char byte;
	ssize_t n = weft_unix_recv_fds(old, &byte, 1, ret_sockets, SOCKETS,
				       &count);

	if (n >= 0 && count == SOCKETS)
		return 0;
	while (count > 0)
		weft_close(ret_sockets[--count]);
	return n < 0 ? (int)n : -EPROTO;
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

int handover_give(int next, const int sockets[SOCKETS])
{
	char ready;
	int r = -ETIMEDOUT;

	WEFT_WITHIN (PATIENCE_NS) {
		r = (int)weft_unix_send_fds(next, "s", 1, sockets, SOCKETS);
		if (r >= 0)
			r = weft_read_all(next, &ready, 1, NULL);
	}
	weft_close(next);
	return r;
}

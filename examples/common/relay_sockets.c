/* SPDX-License-Identifier: MIT */
/*
 * Between two sockets.  Short messages go through a buffer; a peer that fills
 * it has more to come, which then goes by splice(2), without a copy.
 */
#include <fcntl.h>

#include "relay.h"

enum { BUFFER_BYTES = 16384, BURST_BYTES = 512 << 10 };

struct direction {
	int from, to;
};

static int64_t pass_on(void *arg)
{
	const struct direction *way = arg;
	uint64_t done, taken;
	char buf[BUFFER_BYTES];
	ssize_t n = 0;
	int r = 0;

	while (r == 0 &&
	       (n = weft_recv(way->from, buf, sizeof(buf), 0)) > 0) {
		r = weft_send_all(way->to, buf, (size_t)n, 0, NULL);
		if (r == 0 && n == BUFFER_BYTES)
			r = weft_copy(way->to, way->from, BURST_BYTES, &done,
				      &taken);
	}
	if (n < 0)
		return n;
	return r < 0 ? r : weft_shutdown(way->to, SHUT_WR);
}

int64_t relay_sockets(int a, int b)
{
	const struct direction there = { a, b }, back = { b, a };
	int64_t result = 0;
	int r;

	/* With this, no byte is copied that does not have to be. */
	fcntl(a, F_SETFL, O_NONBLOCK);
	fcntl(b, F_SETFL, O_NONBLOCK);
	WEFT_SCOPE (both, &result)
		if ((r = WEFT_GO(both, pass_on, there)) < 0 ||
		    (r = WEFT_GO(both, pass_on, back)) < 0)
			weft_scope_fail(both, r);
	return result;
}

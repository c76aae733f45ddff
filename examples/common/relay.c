/* SPDX-License-Identifier: MIT */
#include "relay.h"

struct direction {
	struct weft_stream *from;
	struct weft_stream *to;
};

static int64_t pass_on(void *arg)
{
	const struct direction *way = arg;
	int r = weft_stream_copy(way->to, way->from, UINT64_MAX, NULL);

	return r < 0 ? r : weft_shutdown(weft_stream_fd(way->to), SHUT_WR);
}

int64_t relay(struct weft_stream *a, struct weft_stream *b)
{
	const struct direction there = { a, b }, back = { b, a };
	int64_t result = 0;
	int r;

	WEFT_SCOPE (both, &result)
		if ((r = WEFT_GO(both, pass_on, there)) < 0 ||
		    (r = WEFT_GO(both, pass_on, back)) < 0)
			weft_scope_fail(both, r);
	return result;
}

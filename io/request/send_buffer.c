/* SPDX-License-Identifier: MIT */
#include "io/request/send_buffer.h"

#include <stdlib.h>

struct weft__out *weft__out_take(struct weft__outs *outs)
{
	struct weft__out *out = outs->first;

	if (out) {
		outs->first = out->next;
		outs->count--;
	} else {
		out = malloc(sizeof(*out));
		if (!out)
			return NULL;
	}
	out->bytes = out->at = 0;
	return out;
}

void weft__out_drop(struct weft__outs *outs, struct weft__out *out)
{
	if (outs->count == WEFT__OUTS_MOST) {
		free(out);
		return;
	}
	out->next = outs->first;
	outs->first = out;
	outs->count++;
}

void weft__outs_close(struct weft__outs *outs)
{
	while (outs->first) {
		struct weft__out *out = outs->first;

		outs->first = out->next;
		free(out);
	}
}

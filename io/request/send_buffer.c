/* SPDX-License-Identifier: MIT */
#include "io/request/send_buffer.h"

#include "runtime/base/memory.h"

struct weft__send_buffer *
weft__send_buffer_take(struct weft__send_buffers *outs)
{
	struct weft__send_buffer *out = outs->first;

	if (out) {
		outs->first = out->next;
		outs->count--;
	} else {
		out = weft__memory_new(outs->memory, sizeof(*out));
		if (!out)
			return NULL;
	}
	out->bytes = out->at = 0;
	return out;
}

void weft__send_buffer_drop(struct weft__send_buffers *outs,
			    struct weft__send_buffer *out)
{
	if (outs->count == WEFT__SEND_BUFFERS_MAX) {
		weft__memory_free(outs->memory, out, sizeof(*out));
		return;
	}
	out->next = outs->first;
	outs->first = out;
	outs->count++;
}

void weft__send_buffers_close(struct weft__send_buffers *outs)
{
	while (outs->first) {
		struct weft__send_buffer *out = outs->first;

		outs->first = out->next;
		weft__memory_free(outs->memory, out, sizeof(*out));
	}
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "cut.h"

enum { ROOM_MIN = 512, ROOM_KEPT = 16 << 10 };

static int make_room(struct cut *cut, size_t more)
{
	size_t room = cut->room ? cut->room : ROOM_MIN;
	char *data;

	while (room - cut->bytes < more)
		room *= 2;
	if (room == cut->room)
		return 0;
	data = realloc(cut->data, room);
	if (!data)
		return -ENOMEM;
	cut->data = data;
	cut->room = room;
	return 0;
}

int cut_begin(struct cut *cut, const char *data, size_t bytes)
{
	int r = make_room(cut, bytes);

	if (r == 0) {
		memcpy(cut->data, data, bytes);
		cut->bytes = bytes;
	}
	return r;
}

/* Receives at most `most` bytes; at most as many as there are already, so that
 * the memory is in proportion to them. */
static ssize_t receive(struct cut *cut, struct weft_stream *stream, size_t most)
{
	ssize_t n;

	if (most > cut->bytes + ROOM_MIN)
		most = cut->bytes + ROOM_MIN;
	n = make_room(cut, most);
	if (n == 0)
		n = weft_stream_read(stream, cut->data + cut->bytes, most);
	if (n > 0)
		cut->bytes += (size_t)n;
	return n;
}

int cut_receive(struct cut *cut, struct weft_stream *stream,
		struct request *request)
{
	int r = 0;

	while (r == 0) {
		ssize_t n = receive(cut, stream, request->missing);

		if (n <= 0)
			return (int)n;
		r = request_parse(request, cut->data, cut->bytes);
	}
	request->data = cut->data;
	return r;
}

void cut_end(struct cut *cut)
{
	cut->bytes = 0;
	if (cut->room > ROOM_KEPT)
		cut_fini(cut);
}

void cut_fini(struct cut *cut)
{
	free(cut->data);
	*cut = (struct cut){ 0 };
}

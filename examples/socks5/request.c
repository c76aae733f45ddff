/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "request.h"

enum { VERSION = 5, COMMAND_CONNECT = 1, METHOD_NONE = 0, NO_METHOD = 0xff };

int request_greet(struct weft_stream *client)
{
	unsigned char head[2], methods[255], answer[2] = { VERSION };
	int r = weft_stream_read_all(client, head, sizeof(head), NULL);

	if (r < 0)
		return r;
	if (head[0] != VERSION)
		return -EPROTO;
	r = weft_stream_read_all(client, methods, head[1], NULL);
	if (r < 0)
		return r;
	answer[1] =
		memchr(methods, METHOD_NONE, head[1]) ? METHOD_NONE : NO_METHOD;
	r = weft_stream_put(client, answer, sizeof(answer));
	return r == 0 && answer[1] == NO_METHOD ? -EACCES : r;
}

int request_read(struct weft_stream *client, struct target *ret_target)
{
	unsigned char head[4];
	int r = weft_stream_read_all(client, head, sizeof(head), NULL);

	if (r < 0)
		return r;
	if (head[0] != VERSION)
		return -EPROTO;
	r = target_read(client, head[3], ret_target);
	return r == 0 && head[1] != COMMAND_CONNECT ? -EOPNOTSUPP : r;
}

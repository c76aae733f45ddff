/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>

#include "peer.h"
#include "topic.h"

int peer_say(struct peer *peer, const char *format, ...)
{
	char text[LINE_BYTES + 1];
	va_list values;
	int bytes, r;

	va_start(values, format);
	bytes = vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	r = weft_mutex_lock(&peer->writing);
	if (r < 0)
		return r;
	r = weft_write_all(peer->fd, text, (size_t)bytes, NULL);
	weft_mutex_unlock(&peer->writing);
	return r;
}

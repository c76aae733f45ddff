/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#include "client.h"

struct line {
	int from; /* the descriptor of the client that sent it */
	unsigned bytes;
	char text[504]; /* with its newline; a longer line is cut in pieces */
};

static struct line room[256];
static struct weft_broadcast lines = WEFT_BROADCAST_INIT(room);

struct client {
	int fd;
	struct weft_subscriber lines;
};

/* Reads the lines of a client.  The end of the stream is returned as a failure,
 * so that it cancels the other task of the group. */
static int64_t listen_to(void *arg)
{
	struct client *client = *(struct client **)arg;
	struct line line = { .from = client->fd };
	char buf[sizeof(line.text)], *end;
	size_t bytes = 0;
	ssize_t n = 1;

	while (n > 0) {
		n = weft_read(client->fd, buf + bytes, sizeof(buf) - 1 - bytes);
		bytes += n > 0 ? (size_t)n : 0;
		/* Ends a line that is too long, or the last one. */
		if (bytes > 0 && (n == 0 || bytes == sizeof(buf) - 1) &&
		    !memchr(buf, '\n', bytes))
			buf[bytes++] = '\n';
		while ((end = memchr(buf, '\n', bytes))) {
			line.bytes = (unsigned)(++end - buf);
			memcpy(line.text, buf, line.bytes);
			weft_broadcast_send(&lines, &line);
			bytes -= line.bytes;
			memmove(buf, end, bytes);
		}
	}
	return n < 0 ? n : -ENODATA;
}

/* Sends a client the lines of the others.  If the client is slow, only this
 * task waits for it; meanwhile the broadcast goes on. */
static int64_t tell(void *arg)
{
	struct client *client = *(struct client **)arg;
	struct line line;
	char notice[64];
	int r = weft_write_all(client->fd, "* welcome\n", 10, NULL);

	while (r == 0) {
		int64_t missed = weft_broadcast_recv(&client->lines, &line);

		if (missed < 0)
			return missed;
		if (missed > 0) { /* may include its own lines */
			int bytes = snprintf(notice, sizeof(notice),
					     "* missed %lld lines\n",
					     (long long)missed);

			r = weft_write_all(client->fd, notice, (size_t)bytes,
					   NULL);
		}
		if (r == 0 && line.from != client->fd)
			r = weft_write_all(client->fd, line.text, line.bytes,
					   NULL);
	}
	return r;
}

int64_t client_run(void *arg)
{
	struct client client = { .fd = *(int *)arg };
	struct client *shared = &client;

	weft_subscribe(&lines, &client.lines);
	WEFT_SCOPE (both, NULL)
		if (WEFT_GO(both, tell, shared) < 0 ||
		    WEFT_GO(both, listen_to, shared) < 0)
			weft_scope_cancel(both);
	return weft_close(client.fd);
}

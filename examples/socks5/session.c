/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "../common/relay.h"
#include "answer.h"
#include "request.h"
#include "session.h"

/* Returns a descriptor, or an error, and whether there was a request, which has
 * an answer. */
static int connect_as_asked(struct weft_stream *client, weft_nsec timeout_ns,
			    bool *ret_asked)
{
	struct target target;
	int r = 0;

	WEFT_WITHIN (timeout_ns) {
		r = request_greet(client);
		if (r == 0)
			r = request_read(client, &target);
		*ret_asked = r == 0 || r == -EOPNOTSUPP || r == -EAFNOSUPPORT;
		if (r == 0)
			r = weft_dial(target.text, NULL);
	}
	/* No name that can be looked up. */
	return r == -EINVAL || r == -ENOSYS ? -EAFNOSUPPORT : r;
}

/* If the socket were closed with unread input, the kernel would send a reset,
 * which can destroy an answer that the client has not read yet. */
static void finish(struct weft_stream *client, weft_nsec timeout_ns)
{
	const void *data;
	ssize_t n;

	WEFT_WITHIN (timeout_ns) {
		if (weft_stream_flush(client) < 0 ||
		    weft_shutdown(weft_stream_fd(client), SHUT_WR) < 0)
			return;
		while ((n = weft_stream_peek(client, &data)) > 0)
			weft_stream_skip(client, (size_t)n);
	}
}

static int64_t serve(struct weft_stream *client, int fd)
{
	struct weft_stream upstream = WEFT_STREAM_INIT(fd);
	int64_t result = answer_granted(client, fd);

	if (result == 0)
		result = weft_stream_flush(client);
	if (result == 0)
		result = relay(client, &upstream);
	weft_stream_close(&upstream);
	return result;
}

int64_t session_run(void *arg)
{
	const struct session *session = arg;
	struct weft_stream client = WEFT_STREAM_INIT(session->fd);
	bool asked = false;
	weft_nsec timeout_ns = session->server->timeout_ns;
	int64_t result = connect_as_asked(&client, timeout_ns, &asked);

	if (result >= 0) {
		result = serve(&client, (int)result);
	} else {
		if (asked)
			answer_refused(&client, (int)result);
		finish(&client, timeout_ns);
	}
	weft_stream_close(&client);
	return result;
}

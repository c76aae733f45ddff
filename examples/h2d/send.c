/* SPDX-License-Identifier: MIT */
/*
 * Sends: asks the session for output, and writes it.
 */
#include <errno.h>

#include "connection.h"

/* The session has nothing to send; or nobody can open the windows for what it
 * has. */
static bool is_over(const struct connection *connection)
{
	nghttp2_session *session = connection->session;

	if (connection->half_closed && connection->owed == 0)
		return true;
	return !nghttp2_session_want_read(session) &&
	       !nghttp2_session_want_write(session);
}

/* Has the session fill the output.  Returns 0, or an error: -ESHUTDOWN if the
 * connection is over. */
static int fill(struct connection *connection)
{
	int r;

	connection_lock(connection);
	r = nghttp2_session_send(connection->session) < 0 ? -EPROTO : 0;
	if (r == 0 && connection->output_bytes == 0 && is_over(connection))
		r = -ESHUTDOWN;
	connection_unlock(connection);
	return r;
}

static int write_output(struct connection *connection)
{
	int r = weft_stream_write_all(connection->stream, connection->output,
				      connection->output_bytes, NULL);

	connection->output_bytes = 0;
	weft_notify_one(&connection->sent);
	return r;
}

int64_t send_run(void *arg)
{
	struct connection *connection = *(struct connection **)arg;
	int r = 0;

	while (r == 0) {
		r = fill(connection);
		if (r == 0 && connection->output_bytes > 0)
			r = write_output(connection);
		else if (r == 0)
			r = weft_notify_wait(&connection->more);
	}
	return r;
}

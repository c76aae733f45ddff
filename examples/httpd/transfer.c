/* SPDX-License-Identifier: MIT */
/*
 * Sends on a socket or, with TLS, on a stream, until the client takes nothing
 * for a minute.
 */
#include <errno.h>
#include <weft/weft.h>

#include "connection.h"

#define STALL_NS WEFT_SEC(60)

/* With MSG_MORE the bytes go with those that follow. */
static int send_some(struct connection *connection, const char *bytes,
		     size_t count, int flags, size_t *ret_done)
{
	struct weft_stream *stream;

	if (!connection->secure)
		return weft_send_all(connection->fd, bytes, count, flags,
				     ret_done);
	stream = secure_stream(connection->secure);
	if (!(flags & MSG_MORE))
		return weft_stream_write_all(stream, bytes, count, ret_done);
	*ret_done = count;
	return weft_stream_put(stream, bytes, count);
}

int connection_send(struct connection *connection, const void *bytes,
		    size_t count, int flags)
{
	const char *at = bytes;

	while (count > 0) {
		size_t done = 0;
		int r = 0;

		WEFT_WITHIN(STALL_NS)
			r = send_some(connection, at, count, flags, &done);
		if (r < 0 && (done == 0 || connection->secure))
			return r;
		at += done;
		count -= done;
	}
	return 0;
}

/* The header has left the buffer. */
static int send_file_secure(struct connection *connection, int file_fd,
			    off_t offset, size_t count)
{
	int r = 0;

	while (r == 0 && count > 0) {
		size_t bytes = sizeof(connection->output);
		ssize_t n;

		n = weft_pread(file_fd, connection->output,
			       bytes < count ? bytes : count, offset);
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		offset += n;
		count -= (size_t)n;
		r = connection_send(connection, connection->output, (size_t)n,
				    0);
	}
	return r;
}

int connection_send_file(struct connection *connection, int file_fd,
			 off_t offset, size_t count)
{
	if (connection->secure)
		return send_file_secure(connection, file_fd, offset, count);
	while (count > 0) {
		size_t done = 0;
		ssize_t n = 0;

		WEFT_WITHIN(STALL_NS)
			n = weft_sendfile(connection->fd, file_fd, offset,
					  count, &done);
		/* The length was promised, but the file may have shrunk. */
		if (done == 0)
			return n < 0 ? (int)n : -EIO;
		offset += (off_t)done;
		count -= done;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "connection.h"

#define STALL_NS WEFT_SEC(60)
#define FINISH_NS WEFT_SEC(2)

struct connection *connection_new(int fd)
{
	struct connection *connection = malloc(sizeof(*connection));

	if (!connection) {
		weft_close(fd);
		return NULL;
	}
	/* With this, weft_sendfile() sends without a copy. */
	fcntl(fd, F_SETFL, O_NONBLOCK);
	connection->fd = fd;
	connection->begin = 0;
	connection->end = 0;
	connection->now.text[0] = '\0';
	connection->modified.text[0] = '\0';
	return connection;
}

void connection_free(struct connection *connection)
{
	weft_close(connection->fd);
	free(connection);
}

ssize_t connection_fill(struct connection *connection)
{
	size_t unused = connection->end - connection->begin;
	ssize_t n;

	if (connection->begin > 0)
		memmove(connection->input,
			connection->input + connection->begin, unused);
	connection->begin = 0;
	connection->end = unused;
	if (unused == sizeof(connection->input))
		return -EMSGSIZE;
	n = weft_recv(connection->fd, connection->input + unused,
		      sizeof(connection->input) - unused, 0);
	if (n > 0)
		connection->end += (size_t)n;
	return n;
}

int connection_send(struct connection *connection, const void *bytes,
		    size_t count, int flags)
{
	const char *at = bytes;

	while (count > 0) {
		size_t done = 0;
		int r = 0;

		WEFT_WITHIN(STALL_NS)
			r = weft_send_all(connection->fd, at, count, flags,
					  &done);
		if (r < 0 && done == 0)
			return r;
		at += done;
		count -= done;
	}
	return 0;
}

int connection_send_file(struct connection *connection, int file_fd,
			 off_t offset, size_t count)
{
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

void connection_finish(struct connection *connection)
{
	if (weft_shutdown(connection->fd, SHUT_WR) < 0)
		return;
	WEFT_WITHIN(FINISH_NS)
		while (weft_recv(connection->fd, connection->input,
				 sizeof(connection->input), 0) > 0)
			;
}

/* SPDX-License-Identifier: MIT */
/*
 * The header of a request, under two deadlines.  A client may be idle for long
 * between requests; but once it has begun a request, the whole header must
 * arrive in time, even if it arrives steadily byte by byte.
 */
#include <errno.h>
#include <weft/weft.h>

#include "body.h"
#include "receive.h"

#define IDLE_NS WEFT_SEC(60)

/* The status for a header that fills the buffer: its first line is too long, or
 * its fields are. */
static int status_too_large(const struct connection *connection)
{
	return memchr(connection->input, '\n', connection->end) ?
		       STATUS_HEADER_TOO_LARGE :
		       STATUS_URI_TOO_LONG;
}

/* Reads until the header is complete.  Returns 0, NO_REQUEST, or the status to
 * refuse the request with. */
static int read_header(struct request *request, struct connection *connection)
{
	size_t used = 0;
	ssize_t n;
	int status;

	while ((status = request_parse(request,
				       connection->input + connection->begin,
				       connection->end - connection->begin,
				       &used)) == REQUEST_PARTIAL) {
		n = connection_fill(connection);
		if (n == -ETIMEDOUT)
			return STATUS_REQUEST_TIMEOUT;
		if (n == -EMSGSIZE)
			return status_too_large(connection);
		if (n <= 0)
			return NO_REQUEST;
	}
	connection->begin += used;
	return status;
}

int receive(struct request *request, struct connection *connection,
	    weft_nsec header_ns)
{
	int status = NO_REQUEST;
	ssize_t n = 1;

	if (connection->begin == connection->end)
		WEFT_WITHIN(IDLE_NS)
			n = connection_fill(connection);
	if (n > 0)
		WEFT_WITHIN(header_ns)
			status = read_header(request, connection);
	return status ? status : body_check(request);
}

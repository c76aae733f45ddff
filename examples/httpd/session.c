/* SPDX-License-Identifier: MIT */
/*
 * A connection from its first request to its last: reads a header, sends an
 * answer, skips a body, again.
 */
#include <errno.h>
#include <stdio.h>

#include "answer.h"
#include "body.h"
#include "session.h"

#define IDLE_NS WEFT_SEC(60)

/* Not a status: the client has gone, or has asked nothing for a minute. */
#define NO_REQUEST (-1)

/* The status for a header that fills the buffer: of the line or the fields. */
static int status_too_large(const struct connection *connection)
{
	return memchr(connection->input, '\n', connection->end) ?
		       HTTP_STATUS_REQUEST_HEADER_FIELDS_TOO_LARGE :
		       HTTP_STATUS_URI_TOO_LONG;
}

/* Reads until a header is there.  0, NO_REQUEST or the status of a refusal. */
static int read_header(struct connection *connection, struct request *request)
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
			return HTTP_STATUS_REQUEST_TIMEOUT;
		if (n == -EMSGSIZE)
			return status_too_large(connection);
		if (n <= 0)
			return NO_REQUEST;
	}
	connection->begin += used;
	return status;
}

/* A client may be idle between requests for long.  But once it has begun one,
 * all of the header must come in time, however steadily it trickles. */
static int receive(const struct server *server, struct connection *connection,
		   struct request *request)
{
	int status = NO_REQUEST;
	ssize_t n = 1;

	if (connection->begin == connection->end)
		WEFT_WITHIN(IDLE_NS)
			n = connection_fill(connection);
	if (n > 0)
		WEFT_WITHIN(server->header_ns)
			status = read_header(connection, request);
	return status ? status : body_check(request);
}

/* After an answer: makes way for the next request, if there is to be one. */
static bool conclude(const struct server *server, struct connection *connection,
		     struct request *request, const struct response *response)
{
	bool again = response->keep_alive;

	if (again && request_has_body(request))
		WEFT_WITHIN(server->header_ns)
			again = body_skip(connection, request);
	if (!again)
		connection_finish(connection);
	return again;
}

/* One request and its answer.  False if it was the last. */
static bool exchange(const struct server *server, struct connection *connection)
{
	struct response response;
	struct request request;
	bool again;

	response_init(&response);
	response.status = receive(server, connection, &request);
	if (response.status == NO_REQUEST)
		return false;
	if (response.status == 0) {
		response.keep_alive = http_should_keep_alive(&request.parser) &&
				      !body_withheld(&request);
		answer(server->root_fd, &request, &response);
	}
	if (server->verbose)
		fprintf(stderr, "%d %s %.*s\n", response.status,
			http_method_str(request.parser.method),
			(int)request.target.bytes, request.target.at);
	if (response_send(&response, &request, connection) < 0)
		again = false;
	else
		again = conclude(server, connection, &request, &response);
	response_fini(&response);
	return again;
}

int64_t session_run(void *arg)
{
	const struct session *session = arg;
	struct connection *connection = connection_new(session->fd);

	if (!connection)
		return -ENOMEM;
	while (exchange(session->server, connection))
		;
	connection_free(connection);
	return 0;
}

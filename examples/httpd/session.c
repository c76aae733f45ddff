/* SPDX-License-Identifier: MIT */
/*
 * A connection from its first request to its last: reads a header, sends an
 * answer, skips a body, and repeats.
 */
#include <stdio.h>

#include "body.h"
#include "receive.h"
#include "response.h"
#include "session.h"

/* Has the client sent all that it sends?  It has asked for the close then, and
 * closing the socket resets nothing. */
static bool is_the_last(const struct connection *connection,
			const struct request *request)
{
	return !http_should_keep_alive(&request->parser) &&
	       !request_has_body(request) &&
	       connection->begin == connection->end;
}

/* After an answer: prepares for the next request, if there may be one. */
static bool conclude(const struct server *server, struct connection *connection,
		     struct request *request, const struct response *response)
{
	bool again = response->keep_alive;

	if (again && request_has_body(request))
		WEFT_WITHIN(server->header_ns)
			again = body_skip(connection, request);
	if (!again && (connection->secure || !response->understood ||
		       !is_the_last(connection, request)))
		connection_finish(connection);
	return again;
}

/* Handles one request.  Returns false if it was the last. */
static bool exchange(const struct server *server, struct connection *connection)
{
	struct response response;
	struct request request;
	bool again;
	int status;

	response_init(&response);
	status = receive(&request, connection, server->header_ns);
	if (status == NO_REQUEST)
		return false;
	response.answer.status = status;
	if (status == 0) {
		response.understood = true;
		response.keep_alive = http_should_keep_alive(&request.parser) &&
				      !body_withheld(&request);
		answer_find(&response.answer, server->site.root_fd,
			    &request.asked);
	}
	if (server->site.opts.verbose)
		fprintf(stderr, "%d %s %.*s\n", response.answer.status,
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
	struct connection *connection =
		connection_new(session->server->site.secure, session->fd);

	if (!connection)
		return 0;
	while (exchange(session->server, connection))
		;
	connection_free(connection);
	return 0;
}

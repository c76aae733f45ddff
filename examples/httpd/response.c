/* SPDX-License-Identifier: MIT */
#include <weft/weft.h>

#include "header.h"
#include "response.h"

void response_init(struct response *response)
{
	response->keep_alive = false;
	response->understood = false;
	answer_init(&response->answer);
}

void response_fini(struct response *response)
{
	answer_fini(&response->answer);
}

/* Sends the text in the output buffer. */
static int send_text(struct connection *connection, const struct text *text,
		     int flags)
{
	return connection_send(connection, connection->output,
			       (size_t)(text->at - connection->output), flags);
}

/* A small file is read into the buffer after its header, and one call sends
 * both.  For a larger one the header waits in the kernel (MSG_MORE), to be sent
 * with the start of the file. */
static int send_file(struct connection *connection, struct text *text,
		     const struct answer *answer)
{
	off_t offset = (off_t)answer->range.first;
	size_t count = answer->range.bytes;
	int r;

	if (count <= (size_t)(text->end - text->at)) {
		r = weft_pread_all(answer->file.fd, text->at, count, offset,
				   NULL);
		text->at += count;
		return r < 0 ? r : send_text(connection, text, 0);
	}
	r = send_text(connection, text, MSG_MORE);
	return r < 0 ? r :
		       connection_send_file(connection, answer->file.fd, offset,
					    count);
}

static int send_page(struct connection *connection, const struct text *text,
		     const struct answer *answer)
{
	int r = send_text(connection, text, MSG_MORE);

	return r < 0 ? r :
		       connection_send(connection, answer->page,
				       answer->page_bytes, 0);
}

int response_send(const struct response *response,
		  const struct request *request, struct connection *connection)
{
	const struct answer *answer = &response->answer;
	struct text text = { connection->output,
			     connection->output + sizeof(connection->output) };

	header_put(&text, response, connection);
	if (request->parser.method == HTTP_HEAD ||
	    answer->status == STATUS_NOT_MODIFIED)
		return send_text(connection, &text, 0);
	if (answer_sends_file(answer))
		return send_file(connection, &text, answer);
	if (answer->page)
		return send_page(connection, &text, answer);
	fields_put_note(&text, answer->status);
	return send_text(connection, &text, 0);
}

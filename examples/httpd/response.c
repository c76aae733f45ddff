/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <weft/weft.h>

#include "header.h"
#include "response.h"

void response_init(struct response *response)
{
	response->keep_alive = false;
	response->file.fd = -1;
	response->page = NULL;
}

void response_fini(struct response *response)
{
	file_close(&response->file);
	free(response->page);
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
		     const struct response *response)
{
	off_t offset = (off_t)response->range.first;
	size_t count = response->range.bytes;
	int r;

	if (count <= (size_t)(text->end - text->at)) {
		r = weft_pread_all(response->file.fd, text->at, count, offset,
				   NULL);
		text->at += count;
		return r < 0 ? r : send_text(connection, text, 0);
	}
	r = send_text(connection, text, MSG_MORE);
	return r < 0 ? r :
		       connection_send_file(connection, response->file.fd,
					    offset, count);
}

static int send_page(struct connection *connection, const struct text *text,
		     const struct response *response)
{
	int r = send_text(connection, text, MSG_MORE);

	return r < 0 ? r :
		       connection_send(connection, response->page,
				       response->page_bytes, 0);
}

int response_send(const struct response *response,
		  const struct request *request, struct connection *connection)
{
	struct text text = { connection->output,
			     connection->output + sizeof(connection->output) };

	header_put(&text, response, connection);
	if (request->parser.method == HTTP_HEAD ||
	    response->status == HTTP_STATUS_NOT_MODIFIED)
		return send_text(connection, &text, 0);
	if (response_sends_file(response))
		return send_file(connection, &text, response);
	if (response->page)
		return send_page(connection, &text, response);
	header_put_note(&text, response->status);
	return send_text(connection, &text, 0);
}

/* SPDX-License-Identifier: MIT */
#include "header.h"

void header_put(struct text *out, const struct response *response,
		struct connection *connection)
{
	text_put(out, "HTTP/1.1 ");
	fields_put_status(out, response->answer.status);
	text_put(out, "\r\n");
	fields_put(out, &response->answer, &connection->dates);
	text_put(out, "Connection: ");
	text_put(out, response->keep_alive ? "keep-alive" : "close");
	text_put(out, "\r\n\r\n");
}

/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_HEADER_H
#define HTTPD_HEADER_H

#include "response.h"

/* Writes the header of an answer, including the empty line that ends it. */
void header_put(struct text *out, const struct response *response,
		struct connection *connection);

/* Writes a body for an answer that has no other: "404 Not Found". */
void header_put_note(struct text *out, int status);

#endif

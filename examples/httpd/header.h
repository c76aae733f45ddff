/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_HEADER_H
#define HTTPD_HEADER_H

#include "response.h"

/* Writes the header of an answer, including the empty line that ends it. */
void header_put(struct text *out, const struct response *response,
		struct connection *connection);

#endif

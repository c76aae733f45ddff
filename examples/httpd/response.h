/* SPDX-License-Identifier: MIT */
/*
 * An answer, and what becomes of its connection.
 */
#ifndef HTTPD_RESPONSE_H
#define HTTPD_RESPONSE_H

#include "../common/http/answer.h"
#include "connection.h"
#include "request.h"

struct response {
	struct answer answer;
	bool keep_alive; /* the connection stays open */
	bool understood; /* the request: all of its fields are known */
};

void response_init(struct response *response);

/* Closes the file and frees the page. */
void response_fini(struct response *response);

/* Sends the answer, without a body if the request was HEAD.  Suspends.  Returns
 * 0, or a negative errno: then the connection is unusable. */
int response_send(const struct response *response,
		  const struct request *request, struct connection *connection);

#endif

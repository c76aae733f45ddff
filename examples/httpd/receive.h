/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_RECEIVE_H
#define HTTPD_RECEIVE_H

#include <weft/weft.h>

#include "connection.h"
#include "request.h"

/* Not a status: the client has closed, or has sent no request for a minute. */
#define NO_REQUEST (-1)

/* Reads the header of the next request, all of it within header_ns from its
 * first byte.  Suspends.  Returns 0, NO_REQUEST, or the status to refuse the
 * request with. */
int receive(struct request *request, struct connection *connection,
	    weft_nsec header_ns);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_BODY_H
#define HTTPD_BODY_H

#include "connection.h"
#include "request.h"

/* Whether the client may send the body that it announces: 0, or the status to
 * refuse it with. */
int body_check(const struct request *request);

/* Whether the client waits for permission to send the body ("Expect:
 * 100-continue").  It gets none, and may then send the body or not: it is
 * unknown what comes next. */
bool body_withheld(const struct request *request);

/* Reads past the body of a request that has one.  Suspends.  Returns false if
 * the connection cannot be used for another request. */
bool body_skip(struct connection *connection, struct request *request);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_BODY_H
#define HTTPD_BODY_H

#include "connection.h"
#include "request.h"

/* Whether the client may send what it announces: 0, or the status of a
 * refusal. */
int body_check(const struct request *request);

/* Whether the client waits for a leave to send it ("Expect: 100-continue").  It
 * gets none, and then may send it or not: nobody knows what comes next. */
bool body_withheld(const struct request *request);

/* Reads past the body of a request that has one.  Suspends.  False if the
 * connection is of no use for another request. */
bool body_skip(struct connection *connection, struct request *request);

#endif

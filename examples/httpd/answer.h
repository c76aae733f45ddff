/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_ANSWER_H
#define HTTPD_ANSWER_H

#include "response.h"

/* Finds the answer to a good request for what lies beneath @root_fd, into
 * *@response, which response_init() has made ready.  Suspends. */
void answer(int root_fd, const struct request *request,
	    struct response *response);

#endif

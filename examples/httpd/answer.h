/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_ANSWER_H
#define HTTPD_ANSWER_H

#include "response.h"

/* Finds the answer to a valid request among the files below root_fd, and writes
 * it to *response, which response_init() has initialised.  Suspends. */
void answer(int root_fd, const struct request *request,
	    struct response *response);

#endif

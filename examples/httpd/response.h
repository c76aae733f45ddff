/* SPDX-License-Identifier: MIT */
/*
 * An answer: a status, and a file, a generated page or neither.
 */
#ifndef HTTPD_RESPONSE_H
#define HTTPD_RESPONSE_H

#include "connection.h"
#include "file.h"
#include "path.h"
#include "range.h"
#include "request.h"

struct response {
	int status;
	bool keep_alive;    /* the connection stays open */
	struct file file;   /* sent if response_sends_file() */
	struct range range; /* of the file */
	char *page;	    /* on the heap; sent if not NULL */
	size_t page_bytes;
	char path[PATH_BYTES]; /* of the file; with 301 the one to go to */
};

void response_init(struct response *response);

/* Closes the file and frees the page. */
void response_fini(struct response *response);

static inline bool response_sends_file(const struct response *response)
{
	return !response->page &&
	       (response->status == HTTP_STATUS_OK ||
		response->status == HTTP_STATUS_PARTIAL_CONTENT);
}

/* Sends the answer, without a body if the request was HEAD.  Suspends.  Returns
 * 0, or a negative errno: then the connection is unusable. */
int response_send(const struct response *response,
		  const struct request *request, struct connection *connection);

#endif

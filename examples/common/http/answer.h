/* SPDX-License-Identifier: MIT */
/*
 * An answer: a status, and a file, a generated page or neither.
 */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include <stddef.h>

#include "asked.h"
#include "file.h"
#include "path.h"
#include "range.h"
#include "status.h"

struct answer {
	int status;
	struct file file;   /* sent if answer_sends_file() */
	struct range range; /* of the file */
	char *page;	    /* on the heap; sent if not NULL */
	size_t page_bytes;
	char path[PATH_BYTES]; /* of the file; with 301 the one to go to */
};

void answer_init(struct answer *answer);

/* Finds the answer to a request among the files below root_fd.  Suspends. */
void answer_find(struct answer *answer, int root_fd, const struct asked *asked);

/* Closes the file and frees the page. */
void answer_fini(struct answer *answer);

static inline bool answer_sends_file(const struct answer *answer)
{
	return !answer->page && (answer->status == STATUS_OK ||
				 answer->status == STATUS_PARTIAL_CONTENT);
}

#endif

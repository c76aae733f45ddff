/* SPDX-License-Identifier: MIT */
/*
 * fetch ADDR PATH... - fetches pages over HTTP/1.0 in parallel, and prints
 * their sizes.
 *
 * Shows	a group of tasks whose first failure cancels the others; one
 *		deadline for all of them; results in memory of the starter.
 * Run		build/examples/httpd . 127.0.0.1:8000 &
 *		build/examples/fetch 127.0.0.1:8000 /README.md /LICENSE
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#define DEADLINE_NS WEFT_SEC(2)

static int64_t fetch_all(void *arg)
{
	struct page *pages = arg;
	int64_t result = 0;
	int r = 0;

	WEFT_WITHIN (DEADLINE_NS) {
		WEFT_SCOPE (all, &result) {
			for (struct page *p = pages; p->path && r == 0; p++)
				r = WEFT_GO(all, page_fetch, p);
			if (r < 0)
				weft_scope_fail(all, r);
		}
		/* The tasks inherit the deadline, and so report it as
		 * -ECANCELED. */
		if (result == -ECANCELED && weft_deadline_passed())
			result = -ETIMEDOUT;
	}
	return result;
}

int main(int argc, char **argv)
{
	struct page *pages = calloc((size_t)argc, sizeof(*pages));
	int64_t result;

	if (argc < 3 || !pages) {
		fprintf(stderr, "Usage: fetch ADDR PATH...\n");
		free(pages);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		pages[i - 2] = (struct page){ argv[1], argv[i], 0 };
	result = weft_run(fetch_all, pages, NULL);
	if (result == -ETIMEDOUT)
		fprintf(stderr, "fetch: %s: not all came in time\n", argv[1]);
	for (int i = 2; i < argc && result == 0; i++)
		printf("%8llu %s\n", (unsigned long long)pages[i - 2].bytes,
		       argv[i]);
	free(pages);
	return result < 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * fetch [--timeout-ms N] ADDR PATH... - fetches pages over HTTP/1.0 in
 * parallel, and prints their sizes.
 *
 * Shows	a group of tasks whose first failure cancels the others; one
 *		deadline for all of them, after 2 s if no other is given;
 *		results in memory of the starter.
 * Run		build/examples/httpd . 127.0.0.1:8000 &
 *		build/examples/fetch 127.0.0.1:8000 /README.md /LICENSE
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/number.h"
#include "page.h"

static weft_nsec timeout_ns;

static int64_t fetch_all(void *arg)
{
	struct page *pages = arg;
	int64_t result = 0;
	int r = 0;

	WEFT_WITHIN (timeout_ns) {
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
	const char *address;
	int64_t result;

	timeout_ns = WEFT_MS(number_option(argc, argv, "timeout-ms", 2000));
	address = argv[optind++];
	if (optind >= argc || !pages) {
		fprintf(stderr, "Usage: fetch [--timeout-ms N] ADDR PATH...\n");
		free(pages);
		return 2;
	}
	for (int i = optind; i < argc; i++)
		pages[i - optind] = (struct page){ address, argv[i], 0 };
	result = weft_run(fetch_all, pages, NULL);
	if (result == -ETIMEDOUT)
		fprintf(stderr, "fetch: %s: not all came in time\n", address);
	for (struct page *p = pages; p->path && result == 0; p++)
		printf("%8llu %s\n", (unsigned long long)p->bytes, p->path);
	free(pages);
	return result < 0;
}

/* SPDX-License-Identifier: MIT */
#ifndef FETCH_PAGE_H
#define FETCH_PAGE_H

#include <weft/weft.h>

struct page {
	const char *address;
	const char *path;
	uint64_t bytes;
};

/* The task that fetches a page, and sets its length.  arg is the address of a
 * pointer to the page. */
int64_t page_fetch(void *arg);

#endif

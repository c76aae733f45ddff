/* SPDX-License-Identifier: MIT */
#ifndef FETCH_PAGE_H
#define FETCH_PAGE_H

#include <weft/weft.h>

struct page {
	const char *address;
	const char *path;
	uint64_t bytes;
};

/* The task that gets a page, of which it knows how long it is in the end.
 * @arg is the address of a pointer to it. */
int64_t page_fetch(void *arg);

#endif

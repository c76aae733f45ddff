/* SPDX-License-Identifier: MIT */
#ifndef HTTP_LISTING_H
#define HTTP_LISTING_H

#include <stddef.h>

/* Makes a page that lists a directory, with path as its title.  The caller
 * frees the page.  Returns 0 or a negative errno. */
int listing_make(int dir_fd, const char *path, char **ret_page,
		 size_t *ret_bytes);

#endif

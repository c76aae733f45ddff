/* SPDX-License-Identifier: MIT */
/* A hosts file as a table. */
#ifndef WEFT_NET_NAMES_HOSTS_H
#define WEFT_NET_NAMES_HOSTS_H

#include <weft/addr.h>

struct weft_allocator;
struct weft__hosts;

/* Reads the file; one that cannot be opened is empty.  Other tasks may run
 * meanwhile.  0, -ENOMEM, -EMFILE or -ENFILE; *ret_hosts is NULL if the file
 * has no names. */
int weft__hosts_read(const struct weft_allocator *memory, const char *path,
		     struct weft__hosts **ret_hosts);
/* NULL is allowed. */
void weft__hosts_free(const struct weft_allocator *memory,
		      struct weft__hosts *hosts);

/* Finds a name that is in lower case, in the order of the file; without hosts,
 * or where the file does not have it, "localhost" is the loopback.  Returns
 * the number of addresses, which have no ports. */
unsigned weft__hosts_find(const struct weft__hosts *hosts, const char *name,
			  int family, struct weft_addr *ret_addrs,
			  unsigned addrs_max);

#endif

/* SPDX-License-Identifier: MIT */
/* The order of a name's addresses. */
#ifndef WEFT_NET_NAMES_ORDER_H
#define WEFT_NET_NAMES_ORDER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <weft/addr.h>

enum { WEFT__SOURCES = 64 };

/* The address from which the kernel sends to a part of the Internet; IPv4 is
 * mapped. */
struct weft__source {
	uint64_t looked_ns; /* 0: never */
	uint64_t key;	    /* the part */
	bool usable;	    /* there is a way */
	struct in6_addr addr;
};

/* Those that were asked for lately; all zero to begin with, but for ask, which
 * fills `usable` and `addr`.  It returns 0, or -errno if it cannot know. */
struct weft__sources {
	int (*ask)(const struct weft_addr *addr,
		   struct weft__source *ret_source);
	struct weft__source known[WEFT__SOURCES];
};

/* Asks the kernel. */
int weft__source_ask(const struct weft_addr *addr,
		     struct weft__source *ret_source);

/* Sorts the addresses, the best first; now_ns: weft_now(). */
void weft__names_order(struct weft__sources *sources, struct weft_addr *addrs,
		       unsigned count, uint64_t now_ns);

#endif

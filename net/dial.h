/* SPDX-License-Identifier: MIT */
/* Dial - what tests and weft_tcp_connect() need of it. */
#ifndef WEFT_NET_DIAL_H
#define WEFT_NET_DIAL_H

#include <weft/dial.h>

enum { WEFT__DIAL_ADDRS_MAX = 16 };

/* Connects to one of these addresses, which are tried in their order. */
int weft__dial_addrs(const struct weft_addr *addrs, int count,
		     const struct weft_addr *local,
		     const struct weft_dial_opts *opts);

/* Orders addresses: the families in turn, beginning with that of the first;
 * within a family as before. */
void weft__dial_order(struct weft_addr *addrs, int count);

#endif

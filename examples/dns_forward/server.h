/* SPDX-License-Identifier: MIT */
#ifndef DNS_FORWARD_SERVER_H
#define DNS_FORWARD_SERVER_H

#include <weft/weft.h>

#include "cache.h"
#include "upstream.h"

/* Shared by all tasks. */
struct server {
	struct upstream upstream;
	struct cache *cache;
	struct weft_udp udp;
	int listener;
};

/* Answer queries until the socket fails; the argument is a struct server *. */
int64_t serve_datagrams(void *arg);
int64_t serve_connections(void *arg);

#endif

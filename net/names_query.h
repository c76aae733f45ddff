/* SPDX-License-Identifier: MIT */
/*
 * Names, their queries - the questions of a runtime that c-ares has.  The task
 * in names_ask.c alone uses all of this.
 */
#ifndef WEFT_NET_NAMES_QUERY_H
#define WEFT_NET_NAMES_QUERY_H

#include "net/names.h"
#include "net/names_channel.h"
#include "net/names_hosts.h"
#include "net/names_order.h"

struct weft__names_engine {
	ares_channel channel; /* NULL: none */
	int epoll_fd;
	struct weft__names_sources order;
	struct weft__hosts *hosts; /* NULL: no names */
	struct weft__sources sources;
	unsigned version; /* of the files and options that these are of */
	struct weft__question *under_way; /* that c-ares has */
	bool gives_up;			  /* the channel is being destroyed */
};

/* Asks, or answers by the hosts file. */
void weft__query_begin(struct weft__names_engine *engine,
		       struct weft__question *question);

/* Takes a question from those under way. */
void weft__query_remove(struct weft__names_engine *engine,
			struct weft__question *question);

#endif

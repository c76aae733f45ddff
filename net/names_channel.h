/* SPDX-License-Identifier: MIT */
/* A channel of c-ares, made of the options of a resolver. */
#ifndef WEFT_NET_NAMES_CHANNEL_H
#define WEFT_NET_NAMES_CHANNEL_H

#include <ares.h>
#include <weft/resolve.h>

#include "net/names.h"

/* Which sources c-ares has, by resolv.conf and nsswitch.conf. */
struct weft__names_sources {
	bool hosts_first; /* the hosts file, which weft reads itself */
	bool servers;	  /* c-ares is asked at all */
};

/* Makes a channel that reports its sockets to socket_state(arg).  It reads no
 * hosts file if weft does.  0 or -errno. */
int weft__names_channel_open(const struct weft__names_opts *opts,
			     ares_sock_state_cb socket_state, void *arg,
			     ares_channel *ret_channel,
			     struct weft__names_sources *ret_sources);

/* The errno of a status of c-ares. */
int weft__names_status_error(int status);

#endif

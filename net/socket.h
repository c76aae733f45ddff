/* SPDX-License-Identifier: MIT */
/*
 * Socket - makes stream sockets of any family.
 */
#ifndef WEFT_NET_SOCKET_H
#define WEFT_NET_SOCKET_H

#include <weft/addr.h>
#include <weft/net.h>

/* Sets options of a socket before it is bound or connected.  0 or -errno. */
typedef int (*weft__socket_set)(int fd, const struct weft_addr *addr,
				const struct weft_socket_opts *opts);

/* Returns a socket that is bound and listens.  opts may be NULL. */
int weft__socket_listen(const struct weft_addr *addr,
			const struct weft_socket_opts *opts,
			weft__socket_set set);

/* Returns a connected socket; suspends. */
int weft__socket_connect(const struct weft_addr *addr,
			 const struct weft_socket_opts *opts,
			 weft__socket_set set);

/* Sets an option whose value is an int.  0 or -errno. */
int weft__socket_set_int(int fd, int level, int option, int value);

#endif

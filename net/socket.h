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

/* Returns a connected socket; suspends.  local may be NULL: else the socket is
 * bound to that address before. */
int weft__socket_connect(const struct weft_addr *addr,
			 const struct weft_addr *local,
			 const struct weft_socket_opts *opts,
			 weft__socket_set set);

/* The same for an address of any family.  tcp.c */
int weft__socket_connect_any(const struct weft_addr *addr,
			     const struct weft_addr *local,
			     const struct weft_socket_opts *opts);

/* Sets an option whose value is an int.  0 or -errno. */
int weft__socket_set_int(int fd, int level, int option, int value);

#endif

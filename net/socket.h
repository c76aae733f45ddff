/* SPDX-License-Identifier: MIT */
/*
 * Socket - makes stream sockets of any family, and what all sockets have in
 * common.
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

/* socket(2), with SOCK_CLOEXEC: a descriptor or -errno. */
int weft__socket_new(int family, int type);

/* bind(2).  0 or -errno. */
int weft__socket_bind(int fd, const struct weft_addr *addr);

/* Options, also such whose value is an int.  0 or -errno. */
int weft__socket_set_option(int fd, int level, int option, const void *value,
			    socklen_t bytes);
int weft__socket_set_int(int fd, int level, int option, int value);
int weft__socket_get_option(int fd, int level, int option, void *ret_value,
			    socklen_t bytes);

#endif

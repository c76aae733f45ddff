/* SPDX-License-Identifier: MIT */
/*
 * Stream sockets: listening and connecting, by text addresses.
 *
 * Addresses are those of weft_addr_parse(): "127.0.0.1:80", "[::]:80", ":80",
 * "unix:/run/app.sock".  Host names are not looked up.  To listen on ":80" is
 * to listen for IPv6 and IPv4, or for IPv4 alone where there is no IPv6.
 */
#ifndef WEFT_NET_H
#define WEFT_NET_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/addr.h>
#include <weft/config.h>
#include <weft/io.h>

WEFT_BEGIN_DECLS

/* Options of a socket.  Start from WEFT_SOCKET_OPTS_INIT. */
struct weft_socket_opts {
	size_t size;
	int backlog;	   /* of a listener; 0: 4096, as the kernel caps it */
	bool delay;	   /* leave Nagle's algorithm on (default: off) */
	bool reuse_port;   /* SO_REUSEPORT */
	bool keepalive;	   /* SO_KEEPALIVE */
	bool only_ipv6;	   /* "[::]" does not take IPv4 too */
	unsigned reserved[4];
};

#define WEFT_SOCKET_OPTS_INIT                                        \
	{ sizeof(struct weft_socket_opts), 0, false, false, false, false, \
	  { 0, 0, 0, 0 } }

/*
 * Opens a listening socket for a text address, with SO_REUSEADDR, so that a
 * server can be started again at once.  opts may be NULL.  Does not suspend;
 * may be called outside a task.  A descriptor, or -EINVAL (address or options),
 * -EADDRINUSE, -EACCES, ...
 */
WEFT_API int weft_tcp_listen(const char *address,
			     const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;

/* Connects to a text address.  opts may be NULL.  Suspends; bound it by
 * WEFT_WITHIN.  A descriptor, or -EINVAL (address or options) or an error of
 * weft_connect(); nothing is left open then. */
WEFT_API int weft_tcp_connect(const char *address,
			      const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;

/* The same for Unix stream sockets.  An address of the other family gives
 * -EAFNOSUPPORT.  A path that exists gives -EADDRINUSE: nothing is unlinked. */
WEFT_API int weft_unix_listen(const char *address,
			      const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;
WEFT_API int weft_unix_connect(const char *address,
			       const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;

/* The address a socket is bound to (of port 0, the port it got), and that of
 * its peer.  0, or -EBADF, -ENOTSOCK, -ENOTCONN.  Does not suspend. */
WEFT_API int weft_local_addr(int fd, struct weft_addr *ret_addr);
WEFT_API int weft_peer_addr(int fd, struct weft_addr *ret_addr);

/* The address a socket is bound to as text, for messages: "?" if it cannot be
 * told.  text has room for WEFT_ADDR_TEXT_BYTES, and is returned. */
WEFT_API const char *weft_local_addr_text(int fd, char *text);

WEFT_END_DECLS

#endif

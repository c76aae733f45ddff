/* SPDX-License-Identifier: MIT */
/*
 * Stream sockets: to listen and connect by text addresses.
 *
 * Addresses are those of weft_addr_parse(): "127.0.0.1:80", "[::]:80", ":80",
 * "unix:/run/app.sock".  The calls of TCP also take a name: "example.org:80";
 * see <weft/resolve.h>.  ":80" listens on IPv6 and IPv4, or on IPv4 alone where
 * there is no IPv6.  The descriptors belong to the caller, are close-on-exec,
 * and are closed with weft_close().
 */
#ifndef WEFT_NET_H
#define WEFT_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/addr.h>
#include <weft/config.h>
#include <weft/io.h>

WEFT_BEGIN_DECLS

/* Options of a socket.  Start from WEFT_SOCKET_OPTS_INIT. */
struct weft_socket_opts {
	size_t size;
	int backlog;	   /* of a listener; 0: 4096; the kernel may cap it */
	bool delay;	   /* keep Nagle's algorithm on; default: off */
	bool reuse_port;   /* SO_REUSEPORT */
	bool keepalive;	   /* SO_KEEPALIVE */
	bool only_ipv6;	   /* "[::]" is for IPv6 alone */
	unsigned reserved[4];
};

#define WEFT_SOCKET_OPTS_INIT                                        \
	{ sizeof(struct weft_socket_opts), 0, false, false, false, false, \
	  { 0, 0, 0, 0 } }

/* Opens a listening TCP socket for a text address, with SO_REUSEADDR, so that a
 * server can restart without a pause.  opts may be NULL.  Does not suspend, and
 * may be called outside a task; but for a name it suspends, in a task only, and
 * listens on the first of its addresses that this machine has.  Returns a
 * descriptor, or -EINVAL (address or options), -EAFNOSUPPORT (a Unix address),
 * -EADDRINUSE, -EACCES, another error of socket(2), bind(2) or listen(2), or of
 * weft_resolve(). */
WEFT_API int weft_tcp_listen(const char *address,
			     const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;

/* Connects a TCP socket to a text address; to a name as weft_dial() does.  opts
 * may be NULL.  Suspends; to limit the time, use WEFT_WITHIN.  Returns a
 * descriptor, or, with nothing left open, -EINVAL (address or options),
 * -EAFNOSUPPORT (a Unix address), -EPERM (not in a task), or an error of
 * socket(2), weft_connect() or weft_resolve(). */
WEFT_API int weft_tcp_connect(const char *address,
			      const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;

/* The same for Unix stream sockets; an address of TCP gives -EAFNOSUPPORT.  To
 * listen on a path that exists gives -EADDRINUSE: no file is unlinked. */
WEFT_API int weft_unix_listen(const char *address,
			      const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;
WEFT_API int weft_unix_connect(const char *address,
			       const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;

/* Connects a stream socket to an address of any family, such as one that came
 * in a message, or from getaddrinfo() by weft_addr_from_sockaddr(); as
 * weft_tcp_connect() or weft_unix_connect() otherwise.  Suspends.  Returns a
 * descriptor, -EINVAL (NULL, no address, or options), -EPERM, or an error of
 * socket(2) or weft_connect(). */
WEFT_API int weft_socket_connect(const struct weft_addr *addr,
				 const struct weft_socket_opts *opts)
	WEFT_WARN_UNUSED;

/* The address that a socket is bound to (with the port that it got for port 0),
 * and the address of its peer.  Do not suspend; from any thread.  Return 0, or
 * -EBADF, -ENOTSOCK, -ENOTCONN, -EAFNOSUPPORT, or -EINVAL (NULL). */
WEFT_API int weft_local_addr(int fd, struct weft_addr *ret_addr);
WEFT_API int weft_peer_addr(int fd, struct weft_addr *ret_addr);

/* The address that a socket is bound to, as text for messages; on an error "?".
 * Writes to text, which has WEFT_ADDR_TEXT_BYTES, and returns it.  Does not
 * suspend; from any thread. */
WEFT_API const char *weft_local_addr_text(int fd, char *text);

/* How many descriptors one message may carry, as the kernel has it. */
#define WEFT_UNIX_FDS_MAX 253

/* Sends descriptors with data on a connected Unix socket: the receiver gets
 * descriptors of its own for the same files, and the sender keeps its.  With
 * descriptors there must be at least one byte.  Suspends.  Returns the number
 * of bytes sent, with which all descriptors went (the rest of the bytes go by
 * weft_send()); or -EINVAL (fds_count below 0 or above WEFT_UNIX_FDS_MAX, fds
 * is NULL, or no bytes), -EBADF (also if one of fds is not open), or another
 * error of weft_sendmsg(). */
WEFT_API ssize_t weft_unix_send_fds(int fd, const void *buf, size_t bytes,
				    const int *fds, int fds_count)
	WEFT_WARN_UNUSED;

/* Receives data and the descriptors that came with it, which are close-on-exec
 * and the caller's.  ret_fds has room for fds_max; *ret_fds_count receives how
 * many came.  Suspends.  Returns the number of bytes, 0 at the end of a stream;
 * or -EINVAL (fds_max below 0, or a pointer is NULL), -EMSGSIZE (more
 * descriptors came than there is room for) or -EMFILE (the process has no
 * number for one of them): then all that came are closed, and the data is lost;
 * or another error of weft_recvmsg(). */
WEFT_API ssize_t weft_unix_recv_fds(int fd, void *buf, size_t bytes,
				    int *ret_fds, int fds_max,
				    int *ret_fds_count) WEFT_WARN_UNUSED;

/* The process at the other end of a Unix socket, as it was when it connected or
 * listened. */
struct weft_cred {
	int64_t pid;	/* 0: not in the caller's namespace */
	uint32_t uid, gid;
};

/* Does not suspend; from any thread.  Returns 0, or -EBADF, -ENOTSOCK,
 * -EAFNOSUPPORT (no Unix socket), -ENOTCONN, or -EINVAL (NULL). */
WEFT_API int weft_peer_cred(int fd, struct weft_cred *ret_cred);

WEFT_END_DECLS

#endif

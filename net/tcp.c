/* SPDX-License-Identifier: MIT */
/*
 * TCP - listens and connects by text.  A text that is no address may be a name:
 * it is dialled (dial.c), or its addresses are looked up and the first that
 * this machine has is bound.
 */
#include <weft/serve.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>

#include "io/os/syscall.h"
#include "net/dial.h"
#include "net/resolve.h"
#include "net/socket.h"

/* "[::]" takes IPv4 too, regardless of the system's default. */
static int tcp_set(int fd, const struct weft_addr *addr,
		   const struct weft_socket_opts *opts)
{
	int only_ipv6 = opts->only_ipv6;
	int r = 0;

	if (weft_addr_family(addr) == AF_INET6)
		r = weft__socket_set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY,
					 only_ipv6);
	/* Connections inherit the option from their listener. */
	if (r == 0 && !opts->delay)
		r = weft__socket_set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return r;
}

static int tcp_parse(const char *address, struct weft_addr *ret_addr)
{
	int r = weft_addr_parse(address, ret_addr);

	if (r < 0)
		return r;
	return weft_addr_family(ret_addr) == AF_UNIX ? -EAFNOSUPPORT : 0;
}

/* On a system without IPv6, the wildcard address means IPv4's. */
static int listen_ipv4(const char *address, const struct weft_socket_opts *opts)
{
	char text[sizeof("0.0.0.0:65535")];
	struct weft_addr addr;
	int r;

	snprintf(text, sizeof(text), "0.0.0.0%s", address);
	r = tcp_parse(text, &addr);
	return r < 0 ? r : weft__socket_listen(&addr, opts, tcp_set);
}

/* On the first of a name's addresses that this machine has. */
static int listen_name(const char *address, const struct weft_socket_opts *opts)
{
	struct weft_addr addrs[WEFT__DIAL_ADDRS_MAX];
	int count = weft_resolve(address, NULL, addrs, WEFT__DIAL_ADDRS_MAX);
	int r = count;

	for (int i = 0; i < count; i++) {
		r = weft__socket_listen(&addrs[i], opts, tcp_set);
		if (r != -EADDRNOTAVAIL && r != -EAFNOSUPPORT)
			break;
	}
	return r;
}

int weft_tcp_listen(const char *address, const struct weft_socket_opts *opts)
{
	struct weft_addr addr;
	int r = tcp_parse(address, &addr);

	if (r == -EINVAL && address && weft__is_name(address))
		return listen_name(address, opts);
	if (r < 0)
		return r;
	r = weft__socket_listen(&addr, opts, tcp_set);
	if (r == -EAFNOSUPPORT && address[0] == ':' &&
	    !(opts && opts->only_ipv6))
		r = listen_ipv4(address, opts);
	return r;
}

/* With the port that the first got. */
static int listen_again(int first, const struct weft_socket_opts *opts)
{
	struct weft_addr addr;
	int r = weft_local_addr(first, &addr);

	return r < 0 ? r : weft__socket_listen(&addr, opts, tcp_set);
}

int weft_tcp_listen_group(const char *address,
			  const struct weft_socket_opts *opts, int *ret_fds,
			  unsigned count)
{
	struct weft_socket_opts shared = WEFT_SOCKET_OPTS_INIT;
	unsigned n = 0;
	int r = -EINVAL;

	if (opts)
		shared = *opts;
	shared.reuse_port = true;
	while (n < count) {
		r = n == 0 ? weft_tcp_listen(address, &shared) :
			     listen_again(ret_fds[0], &shared);
		if (r < 0)
			break;
		ret_fds[n++] = r;
	}
	if (r >= 0)
		return 0;
	while (n > 0)
		weft__syscall_close(ret_fds[--n]);
	return r;
}

int weft_tcp_connect(const char *address, const struct weft_socket_opts *opts)
{
	struct weft_dial_opts dial = WEFT_DIAL_OPTS_INIT;
	struct weft_addr addr;
	int r = tcp_parse(address, &addr);

	dial.socket = opts;
	if (r == -EINVAL && address && weft__is_name(address))
		return weft_dial(address, &dial);
	return r < 0 ? r : weft__socket_connect(&addr, NULL, opts, tcp_set);
}

int weft__socket_connect_any(const struct weft_addr *addr,
			     const struct weft_addr *local,
			     const struct weft_socket_opts *opts)
{
	bool is_unix = addr && weft_addr_family(addr) == AF_UNIX;

	return weft__socket_connect(addr, local, opts,
				    is_unix ? NULL : tcp_set);
}

int weft_socket_connect(const struct weft_addr *addr,
			const struct weft_socket_opts *opts)
{
	return weft__socket_connect_any(addr, NULL, opts);
}

/* SPDX-License-Identifier: MIT */
#include <weft/net.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>

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

int weft_tcp_listen(const char *address, const struct weft_socket_opts *opts)
{
	struct weft_addr addr;
	int r = tcp_parse(address, &addr);

	if (r < 0)
		return r;
	r = weft__socket_listen(&addr, opts, tcp_set);
	if (r == -EAFNOSUPPORT && address[0] == ':' &&
	    !(opts && opts->only_ipv6))
		r = listen_ipv4(address, opts);
	return r;
}

int weft_tcp_connect(const char *address, const struct weft_socket_opts *opts)
{
	struct weft_addr addr;
	int r = tcp_parse(address, &addr);

	return r < 0 ? r : weft__socket_connect(&addr, opts, tcp_set);
}

int weft_socket_connect(const struct weft_addr *addr,
			const struct weft_socket_opts *opts)
{
	bool is_unix = addr && weft_addr_family(addr) == AF_UNIX;

	return weft__socket_connect(addr, opts, is_unix ? NULL : tcp_set);
}

/* SPDX-License-Identifier: MIT */
/*
 * UDP sockets: opening, connecting, closing.
 *
 * A wildcard address is IPv6's, which takes IPv4, too, unless the socket is
 * connected to an IPv4 address or the system has no IPv6.  Options that both
 * families have are then set for both: a datagram of an IPv4 peer heeds IPv4's.
 */
#include "net/udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <weft/io.h>
#include <weft/resolve.h>

#include "io/os/mask.h"
#include "io/os/syscall.h"
#include "net/resolve.h"
#include "net/socket.h"
#include "net/udp_control.h"

/* Of a name. */
enum { ADDRS_MAX = 16 };

static const struct weft_udp_opts defaults = WEFT_UDP_OPTS_INIT;

/* A socket that is to be opened. */
struct plan {
	const struct weft_udp_opts *opts;
	struct weft_addr local, peer; /* none: family AF_UNSPEC */
	bool is_wildcard;	      /* of any family */
};

/* ---- Planning ------------------------------------------------------------ */

static int opts_check(const struct weft_udp_opts *opts)
{
	if (opts->size != sizeof(*opts) || opts->receive_bytes < 0 ||
	    opts->send_bytes < 0 || opts->multicast_ttl < 0 ||
	    opts->multicast_ttl > 255)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(opts->reserved) / sizeof(unsigned); i++)
		if (opts->reserved[i])
			return -EINVAL;
	return 0;
}

static int ip_parse(const char *text, struct weft_addr *ret_addr)
{
	int r = weft_addr_parse(text, ret_addr);

	if (r < 0)
		return r;
	return weft_addr_family(ret_addr) == AF_UNIX ? -EAFNOSUPPORT : 0;
}

/* The wildcard address of IPv4, with the same port. */
static void plan_ipv4(struct plan *plan)
{
	struct sockaddr_in name = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)weft_addr_port(&plan->local)),
	};

	plan->is_wildcard = false;
	(void)!weft_addr_from_sockaddr((const struct sockaddr *)&name,
				       sizeof(name), &plan->local);
}

/* The addresses of a text, which may be a name. */
static int ip_resolve(const char *text, struct weft_addr addrs[ADDRS_MAX])
{
	int r = ip_parse(text, &addrs[0]);

	if (r == -EINVAL && weft__is_name(text))
		return weft_resolve(text, NULL, addrs, ADDRS_MAX);
	return r < 0 ? r : 1;
}

/* ---- Options ------------------------------------------------------------- */

static int set_for_all(int fd, const struct weft_udp_opts *opts)
{
	int r = 0;

	if (opts->reuse_port)
		r = weft__socket_set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (r == 0 && opts->broadcast)
		r = weft__socket_set_int(fd, SOL_SOCKET, SO_BROADCAST, 1);
	if (r == 0 && opts->receive_bytes)
		r = weft__socket_set_int(fd, SOL_SOCKET, SO_RCVBUF,
					 opts->receive_bytes);
	if (r == 0 && opts->send_bytes)
		r = weft__socket_set_int(fd, SOL_SOCKET, SO_SNDBUF,
					 opts->send_bytes);
	/* Without it the datagrams come one by one. */
	if (r == 0 && opts->coalesce && !weft__is_masked(WEFT__FEATURE_UDP_GRO))
		(void)weft__socket_set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
	return r;
}

static int set_for_ipv4(int fd, const struct weft_udp_opts *opts)
{
	struct ip_mreqn from = {
		.imr_ifindex = (int)opts->multicast_interface,
	};
	int r = 0;

	if (opts->want_traffic_class)
		r = weft__socket_set_int(fd, IPPROTO_IP, IP_RECVTOS, 1);
	if (r == 0 && opts->want_errors)
		r = weft__socket_set_int(fd, IPPROTO_IP, IP_RECVERR, 1);
	if (r == 0 && opts->multicast_ttl)
		r = weft__socket_set_int(fd, IPPROTO_IP, IP_MULTICAST_TTL,
					 opts->multicast_ttl);
	if (r == 0 && opts->multicast_to_others)
		r = weft__socket_set_int(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0);
	if (r == 0 && opts->multicast_interface)
		r = weft__socket_set_option(fd, IPPROTO_IP, IP_MULTICAST_IF,
					    &from, sizeof(from));
	return r;
}

static int set_for_ipv6(int fd, const struct weft_udp_opts *opts)
{
	int r = weft__socket_set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY,
				     opts->only_ipv6);

	if (r == 0 && opts->want_local)
		r = weft__socket_set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (r == 0 && opts->want_traffic_class)
		r = weft__socket_set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	if (r == 0 && opts->want_errors)
		r = weft__socket_set_int(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	if (r == 0 && opts->multicast_ttl)
		r = weft__socket_set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS,
					 opts->multicast_ttl);
	if (r == 0 && opts->multicast_to_others)
		r = weft__socket_set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP,
					 0);
	if (r == 0 && opts->multicast_interface)
		r = weft__socket_set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF,
					 (int)opts->multicast_interface);
	return r;
}

static int set_all(int fd, const struct weft_udp_opts *opts, bool is_ipv6)
{
	int r = set_for_all(fd, opts);

	if (r == 0 && is_ipv6)
		r = set_for_ipv6(fd, opts);
	else if (r == 0 && opts->want_local)
		r = weft__socket_set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
	if (r == 0 && !(is_ipv6 && opts->only_ipv6))
		r = set_for_ipv4(fd, opts);
	return r;
}

/* A kernel that does not know the option would send a message with segments as
 * one datagram. */
static bool has_segments(int fd)
{
	int bytes;

	return !weft__is_masked(WEFT__FEATURE_UDP_SEGMENT) &&
	       weft__socket_get_option(fd, IPPROTO_UDP, UDP_SEGMENT, &bytes,
				       sizeof(bytes)) == 0;
}

/* ---- Life ---------------------------------------------------------------- */

static int connect_to(int fd, const struct weft_addr *addr)
{
	return weft__syscall_connect(fd, weft_addr_sockaddr(addr),
				     weft_addr_sockaddr_bytes(addr));
}

static int open_planned(const struct plan *plan, struct weft__udp *ret_udp)
{
	bool is_ipv6 = weft_addr_family(&plan->local) == AF_INET6;
	int fd = weft__socket_new(weft_addr_family(&plan->local), SOCK_DGRAM);
	int r;

	if (fd < 0)
		return fd;
	r = set_all(fd, plan->opts, is_ipv6);
	if (r == 0)
		r = weft__socket_bind(fd, &plan->local);
	if (r == 0 && weft_addr_family(&plan->peer) != AF_UNSPEC)
		r = connect_to(fd, &plan->peer);
	if (r < 0) {
		weft__syscall_close(fd);
		return r;
	}
	*ret_udp = (struct weft__udp){ .is_ipv6 = is_ipv6,
				       .has_errors = plan->opts->want_errors };
	/* relaxed: no other thread has the socket yet. */
	weft__store(&ret_udp->fd, fd, relaxed);
	/* relaxed: see above. */
	weft__store(&ret_udp->segments, has_segments(fd), relaxed);
	return 0;
}

static int open_between(const struct weft_addr *local, bool is_wildcard,
			const struct weft_addr *peer,
			const struct weft_udp_opts *opts, struct weft__udp *udp)
{
	struct plan plan = { .opts = opts, .is_wildcard = is_wildcard };
	int r;

	plan.local = *local;
	if (peer)
		plan.peer = *peer;
	if (is_wildcard && weft_addr_family(&plan.peer) == AF_INET)
		plan_ipv4(&plan);
	r = open_planned(&plan, udp);
	/* On a system without IPv6. */
	if (r == -EAFNOSUPPORT && plan.is_wildcard) {
		plan_ipv4(&plan);
		r = open_planned(&plan, udp);
	}
	return r;
}

/* May another address of a name do? */
static bool tries_next(int r)
{
	return r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT || r == -EINVAL ||
	       r == -ENETUNREACH || r == -EHOSTUNREACH;
}

/* From the first of the local addresses from which one of the peer's can be
 * reached. */
static int open_any(struct weft__udp *udp, const char *address,
		    const struct weft_udp_opts *opts)
{
	struct weft_addr locals[ADDRS_MAX], peers[ADDRS_MAX];
	bool is_wildcard = address[0] == ':' && !opts->only_ipv6;
	int peers_count = 0, locals_count, r = 0;

	if (opts->connect)
		peers_count = ip_resolve(opts->connect, peers);
	if (peers_count < 0)
		return peers_count;
	locals_count = ip_resolve(address, locals);
	if (locals_count < 0)
		return locals_count;
	for (int i = 0; i < locals_count; i++) {
		int at = 0;

		do
			r = open_between(&locals[i], is_wildcard,
					 opts->connect ? &peers[at] : NULL,
					 opts, udp);
		while (tries_next(r) && ++at < peers_count);
		if (!tries_next(r))
			break;
	}
	return r;
}

int weft_udp_open(struct weft_udp *udp, const char *address,
		  const struct weft_udp_opts *opts)
{
	int r = udp ? 0 : -EINVAL;

	opts = opts ? opts : &defaults;
	if (r == 0)
		r = opts_check(opts);
	return r < 0 ? r :
		       open_any(weft__udp(udp), address ? address : ":0", opts);
}

int weft_udp_connect(struct weft_udp *udp, const struct weft_addr *addr)
{
	int r;

	if (!udp || !addr || weft_addr_family(addr) == AF_UNSPEC)
		return -EINVAL;
	r = weft__udp_check_family(weft__udp(udp), addr);
	return r < 0 ? r : connect_to(weft__udp_fd(weft__udp(udp)), addr);
}

/* The number is taken out first: it may be another file's as soon as it is
 * closed. */
int weft_udp_close(struct weft_udp *udp)
{
	struct weft__udp *closed = weft__udp(udp);
	int fd, r;

	if (!weft__running(weft__worker_self()))
		return -EPERM;
	/* relaxed: see weft__udp_fd(). */
	fd = weft__swap(&closed->fd, -1, relaxed);
	r = weft_close(fd);
	if (r == -EBUSY)
		/* relaxed: see weft__udp_fd(). */
		weft__store(&closed->fd, fd, relaxed);
	return r;
}

int weft_udp_fd(const struct weft_udp *udp)
{
	return weft__udp_fd(weft__udp(udp));
}

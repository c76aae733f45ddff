/* SPDX-License-Identifier: MIT */
/*
 * Multicast groups that a socket receives for.
 */
#include <netinet/in.h>
#include <string.h>

#include "net/socket.h"
#include "net/udp.h"

static int set_ipv4(int fd, const struct weft_addr *group, unsigned interface,
		    bool joins)
{
	struct ip_mreqn request = { .imr_ifindex = (int)interface };
	struct sockaddr_in name;

	memcpy(&name, &group->storage, sizeof(name));
	request.imr_multiaddr = name.sin_addr;
	return weft__socket_set_option(
		fd, IPPROTO_IP, joins ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP,
		&request, sizeof(request));
}

static int set_ipv6(int fd, const struct weft_addr *group, unsigned interface,
		    bool joins)
{
	struct ipv6_mreq request;
	struct sockaddr_in6 name;

	memcpy(&name, &group->storage, sizeof(name));
	request.ipv6mr_multiaddr = name.sin6_addr;
	request.ipv6mr_interface = interface ? interface : name.sin6_scope_id;
	return weft__socket_set_option(
		fd, IPPROTO_IPV6, joins ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP,
		&request, sizeof(request));
}

static int set_group(struct weft_udp *udp, const struct weft_addr *group,
		     unsigned interface, bool joins)
{
	int fd = weft__udp_fd(weft__udp(udp));

	switch (group ? weft_addr_family(group) : AF_UNSPEC) {
	case AF_INET:
		return set_ipv4(fd, group, interface, joins);
	case AF_INET6:
		return set_ipv6(fd, group, interface, joins);
	default:
		return -EINVAL;
	}
}

int weft_udp_join(struct weft_udp *udp, const struct weft_addr *group,
		  unsigned interface)
{
	return set_group(udp, group, interface, true);
}

int weft_udp_leave(struct weft_udp *udp, const struct weft_addr *group,
		   unsigned interface)
{
	return set_group(udp, group, interface, false);
}

/* SPDX-License-Identifier: MIT */
/*
 * Control messages of datagrams.
 *
 * A socket for IPv6 may also have IPv4 peers, with mapped addresses.  The
 * kernel then reports the traffic class as it does for IPv4, and the
 * destination as for IPv6; and of what is sent it reads the message of the
 * family that the datagram has, so both are given.
 */
#include "net/udp_control.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "io/os/syscall.h"
#include "net/socket.h"

/* ---- Sending ------------------------------------------------------------- */

static void control_add(struct msghdr *header, int level, int type,
			const void *data, size_t bytes)
{
	struct cmsghdr *control =
		(void *)((char *)header->msg_control + header->msg_controllen);

	memset(control, 0, CMSG_SPACE(bytes));
	control->cmsg_level = level;
	control->cmsg_type = type;
	control->cmsg_len = (socklen_t)CMSG_LEN(bytes);
	memcpy(CMSG_DATA(control), data, bytes);
	header->msg_controllen += (socklen_t)CMSG_SPACE(bytes);
}

static struct in_addr ipv4_of(const struct weft_addr *addr)
{
	struct sockaddr_in ipv4;

	memcpy(&ipv4, &addr->storage, sizeof(ipv4));
	return ipv4.sin_addr;
}

static struct in6_addr mapped(struct in_addr ipv4)
{
	struct in6_addr ipv6 = in6addr_any;

	ipv6.s6_addr[10] = ipv6.s6_addr[11] = 0xff;
	memcpy(&ipv6.s6_addr[12], &ipv4, sizeof(ipv4));
	return ipv6;
}

/* An address of either family, as a socket for IPv6 has it. */
static struct in6_addr ipv6_of(const struct weft_addr *addr)
{
	struct sockaddr_in6 ipv6;

	if (weft_addr_family(addr) == AF_INET)
		return mapped(ipv4_of(addr));
	memcpy(&ipv6, &addr->storage, sizeof(ipv6));
	return ipv6.sin6_addr;
}

static bool is_one_of_ipv4(uint32_t addr)
{
	return addr != htonl(INADDR_ANY) && addr != htonl(INADDR_BROADCAST) &&
	       !IN_MULTICAST(ntohl(addr));
}

/* May it be the address of one host? */
static bool is_one(const struct in6_addr *addr)
{
	uint32_t ipv4;

	memcpy(&ipv4, &addr->s6_addr[12], sizeof(ipv4));
	if (IN6_IS_ADDR_V4MAPPED(addr))
		return is_one_of_ipv4(ipv4);
	return !IN6_IS_ADDR_MULTICAST(addr) && !IN6_IS_ADDR_UNSPECIFIED(addr);
}

static void put_ipv4_source(struct msghdr *header,
			    const struct weft_udp_msg *msg)
{
	struct in_pktinfo info = { .ipi_ifindex = (int)msg->interface };

	if (weft_addr_family(&msg->local) == AF_INET)
		info.ipi_spec_dst = ipv4_of(&msg->local);
	if (!is_one_of_ipv4(info.ipi_spec_dst.s_addr))
		info.ipi_spec_dst.s_addr = htonl(INADDR_ANY);
	control_add(header, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
}

/* Any address, of the family that the datagram has. */
static struct in6_addr any_to_peer(const struct weft_udp_msg *msg, int fd)
{
	struct weft_addr peer = msg->addr;
	struct in6_addr addr;

	if (!peer.bytes && weft_peer_addr(fd, &peer) < 0)
		return in6addr_any;
	addr = ipv6_of(&peer);
	return IN6_IS_ADDR_V4MAPPED(&addr) ?
		       mapped((struct in_addr){ htonl(INADDR_ANY) }) :
		       in6addr_any;
}

static void put_ipv6_source(struct msghdr *header,
			    const struct weft_udp_msg *msg, int fd)
{
	struct in6_pktinfo info = { .ipi6_ifindex = msg->interface };
	int family = weft_addr_family(&msg->local);

	if (family == AF_INET || family == AF_INET6)
		info.ipi6_addr = ipv6_of(&msg->local);
	if (!is_one(&info.ipi6_addr))
		info.ipi6_addr = any_to_peer(msg, fd);
	control_add(header, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
}

void weft__udp_control_put(struct msghdr *header,
			   const struct weft_udp_msg *msg, int fd, bool is_ipv6)
{
	int traffic_class = msg->traffic_class;

	if (msg->interface || msg->local.bytes) {
		if (is_ipv6)
			put_ipv6_source(header, msg, fd);
		else
			put_ipv4_source(header, msg);
	}
	if (!traffic_class)
		return;
	control_add(header, IPPROTO_IP, IP_TOS, &traffic_class,
		    sizeof(traffic_class));
	if (is_ipv6)
		control_add(header, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class,
			    sizeof(traffic_class));
}

void weft__udp_control_put_segment(struct msghdr *header, unsigned bytes)
{
	uint16_t segment_bytes = (uint16_t)bytes;

	control_add(header, IPPROTO_UDP, UDP_SEGMENT, &segment_bytes,
		    sizeof(segment_bytes));
}

/* The kernel tells by a connection to it, which needs SO_BROADCAST. */
bool weft__udp_is_broadcast(const struct weft_addr *addr)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(9) };
	int family = weft_addr_family(addr);
	struct in6_addr ipv6;
	int fd, r;

	if (family != AF_INET && family != AF_INET6)
		return false;
	ipv6 = ipv6_of(addr);
	if (!IN6_IS_ADDR_V4MAPPED(&ipv6))
		return false;
	memcpy(&name.sin_addr, &ipv6.s6_addr[12], sizeof(name.sin_addr));
	fd = weft__socket_new(AF_INET, SOCK_DGRAM);
	if (fd < 0)
		return false;
	r = weft__syscall_connect(fd, (struct sockaddr *)&name, sizeof(name));
	weft__syscall_close(fd);
	return r == -EACCES;
}

/* ---- Receiving ----------------------------------------------------------- */

static void take_ipv4_local(const void *data, struct weft_udp_msg *ret_msg)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	struct in_pktinfo info;

	memcpy(&info, data, sizeof(info));
	name.sin_addr = info.ipi_addr;
	ret_msg->interface = (unsigned)info.ipi_ifindex;
	(void)!weft_addr_from_sockaddr((const struct sockaddr *)&name,
				       sizeof(name), &ret_msg->local);
}

static void take_ipv6_local(const void *data, struct weft_udp_msg *ret_msg)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6 };
	struct in6_pktinfo info;

	memcpy(&info, data, sizeof(info));
	name.sin6_addr = info.ipi6_addr;
	ret_msg->interface = info.ipi6_ifindex;
	(void)!weft_addr_from_sockaddr((const struct sockaddr *)&name,
				       sizeof(name), &ret_msg->local);
}

/* IPv4's is a byte, IPv6's an int. */
static void take_class(const struct cmsghdr *control,
		       struct weft_udp_msg *ret_msg)
{
	int class = *CMSG_DATA(control);

	if (control->cmsg_len >= CMSG_LEN(sizeof(class)))
		memcpy(&class, CMSG_DATA(control), sizeof(class));
	ret_msg->traffic_class = (unsigned char)class;
}

static void take_segment_bytes(const void *data, struct weft_udp_msg *ret_msg)
{
	int bytes;

	memcpy(&bytes, data, sizeof(bytes));
	ret_msg->segment_bytes = (unsigned)bytes;
}

/* Is it that one, and whole? */
static bool is_control(const struct cmsghdr *control, int level, int type,
		       size_t bytes)
{
	return control->cmsg_level == level && control->cmsg_type == type &&
	       control->cmsg_len >= CMSG_LEN(bytes);
}

static void take_one(const struct cmsghdr *control,
		     struct weft_udp_msg *ret_msg)
{
	const void *data = CMSG_DATA(control);

	if (is_control(control, IPPROTO_IP, IP_PKTINFO,
		       sizeof(struct in_pktinfo)))
		take_ipv4_local(data, ret_msg);
	else if (is_control(control, IPPROTO_IPV6, IPV6_PKTINFO,
			    sizeof(struct in6_pktinfo)))
		take_ipv6_local(data, ret_msg);
	else if (is_control(control, IPPROTO_IP, IP_TOS, 1) ||
		 is_control(control, IPPROTO_IPV6, IPV6_TCLASS, sizeof(int)))
		take_class(control, ret_msg);
	else if (is_control(control, IPPROTO_UDP, UDP_GRO, sizeof(int)))
		take_segment_bytes(data, ret_msg);
}

/* By hand: CMSG_NXTHDR() of musl does not compile without warnings. */
void weft__udp_control_take(const struct msghdr *header,
			    struct weft_udp_msg *ret_msg)
{
	const char *control = header->msg_control;
	size_t left = header->msg_controllen;

	while (left >= sizeof(struct cmsghdr)) {
		const struct cmsghdr *next = (const void *)control;
		size_t bytes = CMSG_ALIGN(next->cmsg_len);

		if (next->cmsg_len < sizeof(*next) || next->cmsg_len > left)
			break;
		take_one(next, ret_msg);
		if (bytes >= left)
			break;
		control += bytes;
		left -= bytes;
	}
}

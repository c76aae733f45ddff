/* SPDX-License-Identifier: MIT */
/*
 * Control messages of datagrams: what of a struct weft_udp_msg is neither data
 * nor address.
 */
#ifndef WEFT_NET_UDP_CONTROL_H
#define WEFT_NET_UDP_CONTROL_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <weft/udp.h>

/* Older headers do not name them: Linux 4.18, and 5.0. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* The most that one message has, either way: the destination, by IPv6 or by
 * IPv4; twice a traffic class; a size. */
enum {
	WEFT__UDP_CONTROL_BYTES = CMSG_SPACE(sizeof(struct in6_pktinfo)) +
				  3 * CMSG_SPACE(sizeof(int)),
};

union weft__udp_control {
	char bytes[WEFT__UDP_CONTROL_BYTES];
	struct cmsghdr aligned;
};

/* A message that comes may have more: the owner of the descriptor asks for
 * times, a mark and the like by setsockopt(2). */
enum { WEFT__UDP_CONTROL_MORE = 160 };

union weft__udp_control_in {
	char bytes[WEFT__UDP_CONTROL_BYTES + WEFT__UDP_CONTROL_MORE];
	struct cmsghdr aligned;
};

/* Names are of one of the two families. */
union weft__udp_name {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

/* Begins a header without a control message, which may get one by
 * weft__udp_control_put(). */
static inline void weft__udp_control_begin(struct msghdr *header,
					   union weft__udp_control *control)
{
	header->msg_control = control;
	header->msg_controllen = 0;
}

/* Does a message ask for anything? */
static inline bool weft__udp_control_has(const struct weft_udp_msg *msg)
{
	return msg->interface || msg->local.bytes || msg->traffic_class;
}

/* Adds what msg asks for, of a socket of that family. */
void weft__udp_control_put(struct msghdr *header,
			   const struct weft_udp_msg *msg, int fd,
			   bool is_ipv6);

/* Is it the broadcast of a network of IPv4?  Makes system calls. */
bool weft__udp_is_broadcast(const struct weft_addr *addr);

/* Has the kernel cut the message into datagrams. */
void weft__udp_control_put_segment(struct msghdr *header, unsigned bytes);

/* Sets the fields of a message that was received.  A control message that the
 * kernel has cut off counts as none. */
void weft__udp_control_take(const struct msghdr *header,
			    struct weft_udp_msg *ret_msg);

#endif

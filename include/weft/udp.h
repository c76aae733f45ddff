/* SPDX-License-Identifier: MIT */
/*
 * Datagrams: UDP sockets that receive and send many datagrams with one call.
 *
 *	struct weft_udp_msg msg = { .buf = buf, .room = sizeof(buf) };
 *	struct weft_udp udp;
 *
 *	if (weft_udp_open(&udp, ":7000", NULL) < 0)
 *		return;
 *	while (weft_udp_recv(&udp, &msg, 1, 0) == 1)
 *		(void)weft_udp_send(&udp, &msg, 1, 0);
 *
 * A struct weft_udp is placed where you like, and stays in place until it is
 * closed and no call uses it.  Several tasks may receive from it, and send, at
 * the same time.  Other calls may use its descriptor, too, which is
 * weft_udp_fd(): weft_local_addr(), setsockopt(2).
 *
 * A message holds several datagrams of one peer if `segment_bytes` is set: each
 * of them has that size, but for the last, which may be shorter.  The kernel or
 * the device cuts such a message into datagrams (GSO).  Where neither can, weft
 * sends the datagrams one by one: the receiver sees no difference.
 *
 * Calls that suspend obey WEFT_WITHIN and cancellation, and return -EPERM
 * outside a task or in a future.
 */
#ifndef WEFT_UDP_H
#define WEFT_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/addr.h>
#include <weft/config.h>

WEFT_BEGIN_DECLS

struct weft_udp {
	uint64_t private_words[2];
};

/* Options of a socket of datagrams.  Start from WEFT_UDP_OPTS_INIT. */
struct weft_udp_opts {
	size_t size;
	const char *connect;	   /* the only peer, as text, or by name;
				      NULL: any */
	int receive_bytes;	   /* buffer, SO_RCVBUF; 0: the system's */
	int send_bytes;		   /* buffer, SO_SNDBUF; 0: the system's */
	int multicast_ttl;	   /* how far multicasts go; 0: one hop */
	unsigned multicast_interface; /* where they leave; 0: any */
	bool multicast_to_others;  /* this host does not get them */
	bool broadcast;		   /* SO_BROADCAST: sending it is allowed */
	bool reuse_port;	   /* SO_REUSEPORT */
	bool only_ipv6;		   /* "[::]" is for IPv6 alone */
	bool coalesce;		   /* receive several in one message (GRO) */
	bool want_local;	   /* receive `local` and `interface` */
	bool want_traffic_class;   /* receive `traffic_class` */
	bool want_errors;	   /* for weft_udp_recv_error() */
	unsigned reserved[4];
};

#define WEFT_UDP_OPTS_INIT                                                 \
	{ sizeof(struct weft_udp_opts), NULL, 0, 0, 0, 0, false, false,    \
	  false, false, false, false, false, false, { 0, 0, 0, 0 } }

/*
 * A message; what is not set is zero.  One that was received can be sent as it
 * is, and goes back to its sender, from the address to which it came.
 *
 * Received, `local` is the address to which the datagram was sent, which has no
 * port, and `interface` the index of the interface by which it came.  Sent,
 * they choose the source address and the interface, if set; an address of many,
 * as of a multicast, is no source and is passed over.
 */
struct weft_udp_msg {
	void *buf;
	size_t room;	      /* of buf, to receive into */
	size_t bytes;	      /* received, or to be sent */
	size_t whole_bytes;   /* received: more than `bytes` if cut off */
	size_t sent_bytes;    /* of an unfinished message, sent already */
	unsigned segment_bytes; /* of each datagram; 0: there is one */
	unsigned interface;   /* 0: any, or not asked for */
	unsigned char traffic_class; /* ECN: the lowest two bits; 0: the
					socket's, or not asked for */
	unsigned char reserved[7];
	struct weft_addr addr; /* the peer's; none: that of the connection */
	struct weft_addr local;
};

/* Opens a socket that is bound to a text address; NULL: to a free port of any
 * address.  opts may be NULL.  Does not suspend, and may be called outside a
 * task; but for a name, such as "localhost:53" as either address, it suspends,
 * in a task only, and takes the first of its addresses that will do.  Returns
 * 0, or, with *udp unchanged, -EINVAL (address or options), -EAFNOSUPPORT (a
 * Unix address, or two families), -EADDRINUSE, -EADDRNOTAVAIL, or another error
 * of socket(2), setsockopt(2), bind(2), connect(2) or weft_resolve(). */
WEFT_API WEFT_WARN_UNUSED
int weft_udp_open(struct weft_udp *udp, const char *address,
		  const struct weft_udp_opts *opts);

/* Makes an address the only peer: datagrams of others do not arrive, and
 * messages need no address.  May be repeated, with another one.  Does not
 * suspend; from any thread.  Returns 0, -EINVAL (NULL, or no address),
 * -EAFNOSUPPORT, -EBADF (closed), or another error of connect(2). */
WEFT_API WEFT_WARN_UNUSED
int weft_udp_connect(struct weft_udp *udp, const struct weft_addr *addr);

/* Closes the socket as weft_close() does: ends the calls that wait on it, with
 * -ECANCELED.  Calls that begin later return -EBADF.  Returns 0, -EBADF (closed
 * already), -EPERM (not in a task), or -EBUSY (tasks of another runtime wait on
 * it: nothing was done). */
WEFT_API int weft_udp_close(struct weft_udp *udp);

/* The descriptor; -1 once it is closed. */
WEFT_API int weft_udp_fd(const struct weft_udp *udp);

/*
 * Receives: waits for the first message, and takes as many as have come, up to
 * `count`.  Of each, buf and room are given, and the call sets all other
 * fields; of messages that it did not receive none.  flags: 0, or MSG_DONTWAIT.
 *
 * A datagram that is longer than its room is cut off, and whole_bytes is its
 * length.  With `coalesce`, where the kernel can, a message holds datagrams of
 * segment_bytes each, and room should be 65535.
 *
 * Returns the number of messages, or -EINVAL (msgs is NULL, count less than 1,
 * another flag), -EAGAIN (MSG_DONTWAIT: there is none), -EBADF (closed),
 * -ENOMEM, -ECANCELED (also by a close), -ETIMEDOUT, -EPERM, or what the peer's
 * host has answered to an earlier datagram, such as -ECONNREFUSED: on a
 * connected socket, or with want_errors.  It may be repeated then.
 */
WEFT_API WEFT_WARN_UNUSED
int weft_udp_recv(struct weft_udp *udp, struct weft_udp_msg *msgs, int count,
		  int flags);

/*
 * Sends messages in their order; waits while the socket has no room.  Of each,
 * buf and bytes are given, and addr unless the socket is connected; the rest as
 * far as wanted.  flags: 0, or MSG_DONTWAIT.
 *
 * Returns how many were sent, or the first error if that is none: -EINVAL (msgs
 * is NULL, count less than 1, another flag, segment_bytes above 65535,
 * sent_bytes not below bytes, an address of another family), -EAGAIN
 * (MSG_DONTWAIT: no room), -EDESTADDRREQ (no address), -EMSGSIZE (a datagram is
 * too long), -EACCES (an address of a broadcast), -EBADF (closed), -ENOMEM,
 * -ECANCELED (also by a close), -ETIMEDOUT, -EPERM, or another error of
 * sendmsg(2).  To send the rest, call again with it.  Nothing is lost or
 * doubled: of a message that was begun, sent_bytes tells how far it came, and
 * the next call goes on there.  It is 0 in a message that was sent.
 */
WEFT_API WEFT_WARN_UNUSED
int weft_udp_send(struct weft_udp *udp, struct weft_udp_msg *msgs, int count,
		  int flags);

/* A report of a datagram that did not arrive. */
struct weft_udp_error {
	struct weft_addr addr;	   /* it was sent to */
	struct weft_addr reporter; /* the host that reports it; or none */
	int error;		   /* such as -ECONNREFUSED, -EHOSTUNREACH */
	unsigned mtu;		   /* with -EMSGSIZE: what would have passed */
	unsigned char icmp_type, icmp_code; /* if another host reports it */
	unsigned char reserved[6];
};

/* Waits for a report of a datagram that did not arrive, on a socket with
 * want_errors.  Each report also ends one call that receives or sends, with its
 * error, unless this call takes it before.  A program that has called it once
 * takes all reports, as they have their place in the receive buffer, and calls
 * do not wait well beside them; until then, a call that waits drops those that
 * have ended one.  flags: 0, or MSG_DONTWAIT.  Returns
 * 0, -EINVAL (NULL, or another flag), -EAGAIN (MSG_DONTWAIT: there is none),
 * -EBADF (closed), -ENOMEM, -ECANCELED (also by a close), -ETIMEDOUT, or
 * -EPERM. */
WEFT_API WEFT_WARN_UNUSED
int weft_udp_recv_error(struct weft_udp *udp,
			struct weft_udp_error *ret_error, int flags);

/* Join and leave a multicast group; its port does not count.  interface: an
 * index; 0: the system's choice.  Do not suspend; from any thread.  Return 0,
 * -EINVAL (NULL, or no multicast address), -EADDRINUSE (joined already),
 * -EADDRNOTAVAIL (not joined), -ENODEV (no such interface), -EBADF (closed), or
 * another error of setsockopt(2). */
WEFT_API int weft_udp_join(struct weft_udp *udp, const struct weft_addr *group,
			   unsigned interface);
WEFT_API int weft_udp_leave(struct weft_udp *udp, const struct weft_addr *group,
			    unsigned interface);

WEFT_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Sockets of datagrams for tests.
 *
 * UDP loses what finds a full buffer, and on the loopback interface a sender
 * never waits.  A pair of Unix sockets loses nothing, and its sender waits for
 * its receiver: so the calls are made on those, too.
 */
#ifndef WEFT_TESTS_SUPPORT_UDP_KIT_H
#define WEFT_TESTS_SUPPORT_UDP_KIT_H

#include "net/udp.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

/* A socket of any kind; there is no call of weft's that makes it. */
static inline void udp_over(struct weft_udp *udp, int fd)
{
	struct weft__udp *over = weft__udp(udp);

	memset(udp, 0, sizeof(*udp));
	over->has_errors = true;
	/* relaxed: no other thread has it yet. */
	weft__store(&over->fd, fd, relaxed);
}

static inline void udp_over_pair(struct weft_udp two[2])
{
	int fds[2];

	EXPECT(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) == 0);
	udp_over(&two[0], fds[0]);
	udp_over(&two[1], fds[1]);
}

static inline struct weft_addr udp_addr_of(const char *text)
{
	struct weft_addr addr;

	EXPECT(weft_addr_parse(text, &addr) == 0);
	return addr;
}

static inline void udp_addr(const struct weft_udp *udp,
			    struct weft_addr *ret_addr)
{
	EXPECT(weft_local_addr(weft_udp_fd(udp), ret_addr) == 0);
}

/* Two sockets at an address with a free port; the second sends to the first
 * without one. */
static inline void udp_pair_at(const char *address, struct weft_udp two[2],
			       const struct weft_udp_opts *opts)
{
	struct weft_addr addr;

	EXPECT(weft_udp_open(&two[0], address, opts) == 0);
	EXPECT(weft_udp_open(&two[1], address, opts) == 0);
	udp_addr(&two[0], &addr);
	EXPECT(weft_udp_connect(&two[1], &addr) == 0);
}

static inline void udp_pair(struct weft_udp two[2],
			    const struct weft_udp_opts *opts)
{
	udp_pair_at("127.0.0.1:0", two, opts);
}

static inline void udp_close_both(struct weft_udp two[2])
{
	EXPECT(weft_udp_close(&two[0]) == 0);
	EXPECT(weft_udp_close(&two[1]) == 0);
}

static inline struct weft_udp_msg udp_msg(void *buf, size_t room, size_t bytes)
{
	return (struct weft_udp_msg){ .buf = buf,
				      .room = room,
				      .bytes = bytes };
}

/* Sends one message; on a connection, without an address. */
static inline void udp_say(struct weft_udp *udp, const char *text,
			   const struct weft_addr *addr)
{
	char copy[64];
	struct weft_udp_msg msg = udp_msg(copy, sizeof(copy), strlen(text));

	memcpy(copy, text, msg.bytes);
	if (addr)
		msg.addr = *addr;
	EXPECT(weft_udp_send(udp, &msg, 1, 0) == 1);
	EXPECT(msg.sent_bytes == 0);
}

/* Receives one message, which is that text. */
static inline struct weft_udp_msg udp_hear(struct weft_udp *udp,
					   const char *text)
{
	char buf[64];
	struct weft_udp_msg msg = udp_msg(buf, sizeof(buf), 0);

	EXPECT(weft_udp_recv(udp, &msg, 1, 0) == 1);
	EXPECT(msg.bytes == strlen(text) && msg.whole_bytes == msg.bytes);
	EXPECT(memcmp(buf, text, msg.bytes) == 0);
	msg.buf = NULL;
	return msg;
}

/* May a socket have that much in its buffer? */
static inline bool udp_has_room(int bytes)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	socklen_t size = sizeof(int);
	struct weft_udp udp;
	int room = 0;

	opts.receive_bytes = bytes;
	if (weft_udp_open(&udp, "127.0.0.1:0", &opts) < 0)
		return false;
	(void)!getsockopt(weft_udp_fd(&udp), SOL_SOCKET, SO_RCVBUF, &room,
			  &size);
	close(weft_udp_fd(&udp));
	return room >= bytes;
}

/* The kernel may lack IPv6, or the loopback interface its address. */
static inline bool udp_has_ipv6(void)
{
	struct weft_udp udp;

	if (weft_udp_open(&udp, "[::1]:0", NULL) < 0)
		return false;
	close(weft_udp_fd(&udp));
	return true;
}

#endif

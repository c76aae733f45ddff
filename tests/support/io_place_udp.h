/* SPDX-License-Identifier: MIT */
/*
 * Places for calls on datagrams (tests/support/io_place.h).  Each datagram is a
 * piece of the stream.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_PLACE_UDP_H
#define WEFT_TESTS_SUPPORT_IO_PLACE_UDP_H

#include "tests/support/errno_now.h"
#include "tests/support/io_place.h"

static inline void udp_in_open(struct place *place)
{
	struct weft_udp two[2];

	udp_pair(two, NULL);
	place->udp = two[0];
	place->fd = weft_udp_fd(&two[0]);
	place->peer = weft_udp_fd(&two[1]);
}

/* The sender of a Unix socket waits for its receiver. */
static inline void udp_out_open(struct place *place)
{
	struct weft_udp two[2];

	udp_over_pair(two);
	place->udp = two[0];
	place->fd = weft_udp_fd(&two[0]);
	place->peer = weft_udp_fd(&two[1]);
	stuff(place);
}

/* The kernel says that there is room only once most of it is free. */
static inline void udp_out_let_go(struct place *place)
{
	drain(place, place->peer);
}

static inline void udp_errors_open(struct place *place)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp gone;

	opts.want_errors = true;
	EXPECT(weft_udp_open(&place->udp, "127.0.0.1:0", &opts) == 0);
	place->fd = weft_udp_fd(&place->udp);
	EXPECT(weft_udp_open(&gone, "127.0.0.1:0", NULL) == 0);
	udp_addr(&gone, &place->addr);
	EXPECT(weft_udp_close(&gone) == 0);
}

/* A report that came before may end a send, which is made again. */
static inline void udp_errors_let_go(struct place *place)
{
	ssize_t n;

	do
		n = sendto(place->fd, "x", 1, 0,
			   weft_addr_sockaddr(&place->addr),
			   weft_addr_sockaddr_bytes(&place->addr));
	while (n < 0 && errno_now() == ECONNREFUSED);
	EXPECT(n == 1);
	place->offered++;
}

static inline void udp_errors_settle(struct place *place)
{
	struct weft_udp_error error;

	if (place->fd < 0)
		return;
	while (weft_udp_recv_error(&place->udp, &error, MSG_DONTWAIT) == 0)
		place->taken++;
	EXPECT(place->taken == place->offered);
}

#endif

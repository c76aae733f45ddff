/* SPDX-License-Identifier: MIT */
/*
 * Dialling: connects a stream socket to a host by its name, by whichever of its
 * addresses is the first to answer.
 */
#ifndef WEFT_DIAL_H
#define WEFT_DIAL_H

#include <stddef.h>

#include <weft/addr.h>
#include <weft/config.h>
#include <weft/net.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

/* Options of weft_dial().  Start from WEFT_DIAL_OPTS_INIT; 0 or NULL means the
 * default. */
struct weft_dial_opts {
	size_t size;
	int family;	    /* AF_INET or AF_INET6 alone; default: both */
	unsigned reserved;
	weft_nsec delay_ns; /* until the next address is tried, while the one
			       before does not answer; default: 250 ms */
	const char *local;  /* an address to connect from, as text: no name;
			       with port 0, any port */
	const struct weft_socket_opts *socket;
	uint64_t reserved_words[4];
};
#define WEFT_DIAL_OPTS_INIT                                            \
	{ sizeof(struct weft_dial_opts), 0, 0, 0, NULL, NULL,          \
	  { 0, 0, 0, 0 } }

/*
 * Connects to "name:port", to an address in the form of weft_addr_parse(), or
 * to a Unix socket ("unix:/run/app.sock").  opts may be NULL.  Suspends; to
 * limit the time, use WEFT_WITHIN.
 *
 * A name's addresses, 16 at most, are tried as RFC 8305 says ("happy
 * eyeballs"): IPv6 and IPv4 in turn, beginning with the best.  The next one is
 * tried when the one before has failed, or has not answered for delay_ns; the
 * first connection wins, and the others are closed before the call returns.
 *
 * Returns a connected descriptor, which is the caller's, or, with nothing left
 * open: -EINVAL (the address, or options), -EAFNOSUPPORT (no address of the
 * family of local), the first error of those addresses (see weft_connect() and
 * bind(2)), or an error of weft_resolve().
 */
WEFT_API int weft_dial(const char *address, const struct weft_dial_opts *opts)
	WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Names: the addresses of a host, by the hosts file and DNS.
 *
 *	struct weft_addr addrs[8];
 *	int n = weft_resolve("example.org:443", NULL, addrs, 8);
 *
 * The look-ups of a runtime are made by one task of its own, over c-ares: no
 * thread is made and none blocks on the network.  /etc/hosts, /etc/resolv.conf
 * (servers, search domains, ndots, timeout, attempts) and the order in
 * /etc/nsswitch.conf hold as for getaddrinfo().  Where nsswitch.conf names
 * other sources for hosts than files and dns, such as mdns, getaddrinfo() is
 * called, in a lane of weft_blocking().
 *
 * IPv4 and IPv6 are asked for at the same time, and the answers to both are
 * waited for.  Some networks drop the queries for one: there a look-up takes as
 * long as servers are tried, by default 75 s for one server.  The caller's
 * deadline ends its wait, without an address; `family` asks for one family.
 *
 * Tasks that ask for the same name share one look-up.  Answers are kept for as
 * long as their TTL says, but for at most a day, or a minute if one family of
 * two has no address; "no such name" and "no address" for 5 seconds.  All are
 * forgotten when one of the three files changes, which is looked at once a
 * second at most.
 */
#ifndef WEFT_RESOLVE_H
#define WEFT_RESOLVE_H

#include <stddef.h>

#include <weft/addr.h>
#include <weft/config.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

/* The most addresses that a look-up returns. */
#define WEFT_RESOLVE_MAX 32

/* Options of a look-up.  Start from WEFT_RESOLVE_OPTS_INIT. */
struct weft_resolve_opts {
	size_t size;
	int family; /* AF_INET or AF_INET6; 0: both.  A name without an
		       address of this family is looked up in the search
		       domains, too. */
	unsigned reserved[3];
};
#define WEFT_RESOLVE_OPTS_INIT \
	{ sizeof(struct weft_resolve_opts), 0, { 0, 0, 0 } }

/*
 * Looks a host up: "name:port", with a decimal port.  An address in the form of
 * weft_addr_parse() is returned as it is, and no server is asked.  Fills
 * ret_addrs with at most addrs_max addresses, the best first, in the order of
 * RFC 6724.  opts may be NULL.  Suspends.  A deadline or a cancellation ends
 * the caller's wait immediately; the look-up goes on for other tasks that wait
 * for it.
 *
 * A name has letters, digits, hyphens, underscores and dots, at most 253 bytes
 * and 63 between two dots.  Its last part may not be a number.  A name with a
 * dot at its end is complete: search domains are not tried.
 *
 * Returns the number of addresses, 1 or more, or, with ret_addrs unchanged:
 *   -ENOENT        no such name (strerror: "No such file or directory")
 *   -ENODATA       the name exists, and has no address of that family
 *   -EAGAIN        the servers failed or refused, or none listens, or the
 *                  runtime has its maximum of tasks
 *   -ETIMEDOUT     no server answered, or the caller's own deadline passed:
 *                  see weft_deadline_passed()
 *   -EBADMSG       a server's answer cannot be read
 *   -EINVAL        neither an address nor a name, or wrong options
 *   -EAFNOSUPPORT  an address of another family than opts asks for
 *   -ECANCELED, -EPERM (not in a task)
 *   -ESHUTDOWN     the runtime is ending
 *   -ENOMEM, -EMFILE, -ENFILE
 *   -ENOSYS        weft was built without c-ares: it has addresses alone
 */
WEFT_API int weft_resolve(const char *address,
			  const struct weft_resolve_opts *opts,
			  struct weft_addr *ret_addrs, int addrs_max)
	WEFT_WARN_UNUSED;

/* Options of a runtime's resolver.  Start from WEFT_RESOLVER_OPTS_INIT; 0 or
 * NULL means the default. */
struct weft_resolver_opts {
	size_t size;
	const char *servers;	 /* "192.0.2.1,[2001:db8::1]:5353": instead of
				    those of resolv.conf; nsswitch.conf does not
				    count then */
	const char *resolv_conf; /* default: "/etc/resolv.conf" */
	weft_nsec timeout_ns;	 /* of a server's first try; default: that of
				    resolv.conf, or 5 s */
	unsigned tries;		 /* of each server; default: that of
				    resolv.conf, or 4 */
	unsigned answers_max;	 /* that are kept; default: 1024 */
	unsigned reserved[4];
};
#define WEFT_RESOLVER_OPTS_INIT                                  \
	{ sizeof(struct weft_resolver_opts), NULL, NULL, 0, 0, 0, \
	  { 0, 0, 0, 0 } }

/* Sets the options of the resolver of the calling task's runtime; NULL: the
 * defaults.  They are copied.  The answers that were kept are forgotten, and
 * look-ups under way are made again.  Does not suspend.  Returns 0, -EINVAL
 * (options, or servers that are no addresses), -ENOMEM, -EMFILE, -ENFILE,
 * -EPERM (not in a task), or -ENOSYS (as above). */
WEFT_API int weft_resolver_set(const struct weft_resolver_opts *opts);

WEFT_END_DECLS

#endif

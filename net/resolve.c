/* SPDX-License-Identifier: MIT */
/*
 * Resolve - texts to addresses.  An address is parsed, and a name is split from
 * its port and looked up (names.c).
 *
 * A name is brought into lower case, so that it is one question however it is
 * written.  A last part that is a number is refused: "1.2.3" would be an
 * address for some resolvers, and a name for others.
 */
#include "net/resolve.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "io/request/call.h"
#include "net/names.h"

enum { LABEL_BYTES_MAX = 63 };

static const struct weft_resolve_opts defaults = WEFT_RESOLVE_OPTS_INIT;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* "12" or "0x1f", which inet_aton() takes for a part of an address. */
static bool is_number(const char *label, size_t bytes)
{
	const char *digits = "0123456789";

	if (bytes >= 2 && label[0] == '0' && label[1] == 'x') {
		digits = "0123456789abcdef";
		label += 2;
		bytes -= 2;
	}
	return strspn(label, digits) >= bytes;
}

/* Is it a name, in lower case? */
static bool name_valid(const char *name)
{
	const char *label = name;
	size_t bytes;

	for (;;) {
		for (bytes = 0; is_of_name(label[bytes]); bytes++)
			;
		if (bytes == 0 || bytes > LABEL_BYTES_MAX)
			return false;
		if (label[bytes] == '\0' ||
		    (label[bytes] == '.' && label[bytes + 1] == '\0'))
			return !is_number(label, bytes);
		if (label[bytes] != '.')
			return false;
		label += bytes + 1;
	}
}

/* Splits "name:port".  The name is brought into lower case. */
static int name_split(const char *text, char name[WEFT__NAME_BYTES_MAX + 1],
		      int *ret_port)
{
	const char *colon = strchr(text, ':');
	size_t bytes = colon ? (size_t)(colon - text) : 0;
	struct weft_addr any;

	if (bytes == 0 || bytes > WEFT__NAME_BYTES_MAX)
		return -EINVAL;
	for (size_t i = 0; i < bytes; i++)
		name[i] = lower(text[i]);
	name[bytes] = '\0';
	/* ":443" is an address, too. */
	if (!name_valid(name) || weft_addr_parse(colon, &any) < 0)
		return -EINVAL;
	*ret_port = weft_addr_port(&any);
	return 0;
}

bool weft__is_name(const char *address)
{
	char name[WEFT__NAME_BYTES_MAX + 1];
	int port;

	return name_split(address, name, &port) == 0;
}

static void port_set(struct weft_addr *addr, int port)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (weft_addr_family(addr) == AF_INET) {
		memcpy(&in, &addr->storage, sizeof(in));
		in.sin_port = htons((uint16_t)port);
		memcpy(&addr->storage, &in, sizeof(in));
	} else {
		memcpy(&in6, &addr->storage, sizeof(in6));
		in6.sin6_port = htons((uint16_t)port);
		memcpy(&addr->storage, &in6, sizeof(in6));
	}
}

static int opts_check(const struct weft_resolve_opts *opts)
{
	if (opts->size != sizeof(*opts) ||
	    (opts->family != AF_UNSPEC && opts->family != AF_INET &&
	     opts->family != AF_INET6))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(opts->reserved) / sizeof(unsigned); i++)
		if (opts->reserved[i])
			return -EINVAL;
	return 0;
}

static int resolve_name(const char *address, int family,
			struct weft_addr *ret_addrs, int addrs_max)
{
	char name[WEFT__NAME_BYTES_MAX + 1];
	int port, r = name_split(address, name, &port);

	if (r == 0)
		r = weft__names_look_up(name, family, ret_addrs, addrs_max);
	for (int i = 0; i < r; i++)
		port_set(&ret_addrs[i], port);
	return r;
}

int weft_resolve(const char *address, const struct weft_resolve_opts *opts,
		 struct weft_addr *ret_addrs, int addrs_max)
{
	struct weft__worker *worker;
	struct weft_addr addr;
	int r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	opts = opts ? opts : &defaults;
	if (!address || !ret_addrs || addrs_max < 1)
		return -EINVAL;
	r = opts_check(opts);
	if (r < 0)
		return r;
	r = weft_addr_parse(address, &addr);
	if (r == -EINVAL)
		return resolve_name(address, opts->family, ret_addrs,
				    addrs_max);
	if (r < 0)
		return r;
	if (opts->family != AF_UNSPEC &&
	    opts->family != weft_addr_family(&addr))
		return -EAFNOSUPPORT;
	ret_addrs[0] = addr;
	return 1;
}

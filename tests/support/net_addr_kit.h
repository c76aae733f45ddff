/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the tests of socket addresses share.
 *
 * Each must_...() is one check: that a text parses, an address formats, both
 * come back the same, or a text or sockaddr is refused or taken.  The table
 * good[] has texts that parse.
 */
#ifndef WEFT_TESTS_SUPPORT_NET_ADDR_KIT_H
#define WEFT_TESTS_SUPPORT_NET_ADDR_KIT_H

#include <weft/addr.h>

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void must_parse(const char *text, struct weft_addr *addr);

void must_format(const struct weft_addr *addr, const char *expected);

void must_round_trip(const struct weft_addr *addr);

/* Fails with @error, and writes to nothing. */
void must_fail(const char *text, int error);

void must_not_take(const void *sockaddr, size_t bytes, int error);

void must_take(const void *sockaddr, size_t bytes, struct weft_addr *addr);

/* "unix:" or "unix:@", then @count times @c. */
const char *long_text(const char *head, size_t count, char c);

static const struct {
	const char *text;
	const char *formatted;
	int family;
	int port;
} good[] __attribute__((unused)) = {
	{ "127.0.0.1:80", "127.0.0.1:80", AF_INET, 80 },
	{ "0.0.0.0:0", "0.0.0.0:0", AF_INET, 0 },
	{ "255.255.255.255:65535", "255.255.255.255:65535", AF_INET, 65535 },
	{ "[::1]:80", "[::1]:80", AF_INET6, 80 },
	{ "[::]:0", "[::]:0", AF_INET6, 0 },
	{ ":80", "[::]:80", AF_INET6, 80 },
	{ ":0", "[::]:0", AF_INET6, 0 },
	{ "[2001:DB8:0:0::00A]:443", "[2001:db8::a]:443", AF_INET6, 443 },
	{ "[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.4]:5", AF_INET6, 5 },
	{ "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%4294967295]:65535",
	  "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535",
	  AF_INET6, 65535 },
	{ "[fe80::1%7]:80", "[fe80::1%7]:80", AF_INET6, 80 },
	{ "/", "unix:/", AF_UNIX, -EAFNOSUPPORT },
	{ "/run/a.sock", "unix:/run/a.sock", AF_UNIX, -EAFNOSUPPORT },
	{ "/a b:80", "unix:/a b:80", AF_UNIX, -EAFNOSUPPORT },
	{ "/a\\x41", "unix:/a\\x5cx41", AF_UNIX, -EAFNOSUPPORT },
	{ "/a\n\x7f\xc3\xa9", "unix:/a\\x0a\\x7f\xc3\xa9", AF_UNIX,
	  -EAFNOSUPPORT },
	{ "unix:/run/a.sock", "unix:/run/a.sock", AF_UNIX, -EAFNOSUPPORT },
	{ "unix:a.sock", "unix:a.sock", AF_UNIX, -EAFNOSUPPORT },
	{ "unix:/a\\x41\\x5C", "unix:/aA\\x5c", AF_UNIX, -EAFNOSUPPORT },
	{ "unix:\\x40a@", "unix:\\x40a@", AF_UNIX, -EAFNOSUPPORT },
	{ "unix:@name", "unix:@name", AF_UNIX, -EAFNOSUPPORT },
	{ "unix:@@/a b", "unix:@@/a b", AF_UNIX, -EAFNOSUPPORT },
	{ "unix:@\\x00a\\x00", "unix:@\\x00a\\x00", AF_UNIX, -EAFNOSUPPORT },
};

#endif

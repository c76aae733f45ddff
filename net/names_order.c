/* SPDX-License-Identifier: MIT */
/*
 * Names, in order - the rules of RFC 6724, section 6, for the addresses of an
 * answer.
 *
 * Each destination is compared with the source address that a datagram to it
 * would have.  The kernel tells that of a socket that was connected, which
 * takes four calls.  So a source is kept, for a second, for all destinations of
 * a part: the same family and scope, and the same first 48 bits (IPv6) or 8
 * (IPv4).  Where a route divides such a part, the order may be that of another
 * address of it; the addresses are the same, and weft_dial() tries all.
 *
 * An answer whose addresses are all of one part, with one source, differs by
 * rule 9 alone, and only for IPv6.
 *
 * Rules 3, 4 and 7 are left out, as in c-ares and glibc: they need to know
 * which addresses are deprecated, of a home, or of a tunnel.
 */
#include "net/names_order.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/resolve.h>
#include <weft/time.h>

#include "io/os/syscall.h"

#define LEAF __attribute__((noinline))
#define KEPT_NS WEFT_SEC(1)

/* RFC 4007 and RFC 6724, section 3.1. */
enum { SCOPE_LINK = 2, SCOPE_SITE = 5, SCOPE_GLOBAL = 14 };

/* RFC 6724, section 2.2: a source's prefix ends where its interface begins. */
enum { PREFIX_BITS = 64 };

/* The results of rules 1, 2, 5, 6, 8 and 9, in the order of the rules. */
struct rank {
	bool unusable;
	bool scope_differs;
	bool label_differs;
	unsigned precedence;
	unsigned scope;
	unsigned common; /* bits; 0 for IPv4 */
};

/* ---- Addresses ----------------------------------------------------------- */

/* IPv4 as IPv6, of ::ffff:0:0/96. */
static struct in6_addr six_of(const struct weft_addr *addr)
{
	struct in6_addr six = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (weft_addr_family(addr) == AF_INET) {
		memcpy(&in, &addr->storage, sizeof(in));
		memcpy(&six.s6_addr[12], &in.sin_addr, 4);
		return six;
	}
	memcpy(&in6, &addr->storage, sizeof(in6));
	return in6.sin6_addr;
}

static unsigned scope_of(const struct in6_addr *addr)
{
	const uint8_t *bytes = addr->s6_addr;

	if (IN6_IS_ADDR_V4MAPPED(addr))
		return bytes[12] == 127 ||
				       (bytes[12] == 169 && bytes[13] == 254) ?
			       SCOPE_LINK :
			       SCOPE_GLOBAL;
	if (IN6_IS_ADDR_MULTICAST(addr))
		return bytes[1] & 0x0f;
	if (IN6_IS_ADDR_LOOPBACK(addr) || IN6_IS_ADDR_LINKLOCAL(addr))
		return SCOPE_LINK;
	return IN6_IS_ADDR_SITELOCAL(addr) ? SCOPE_SITE : SCOPE_GLOBAL;
}

/* The table of RFC 6724, section 2.1.  Longer prefixes come first. */
static const struct policy {
	uint8_t prefix[16];
	unsigned bits, precedence, label;
} policies[] = {
	{ { [15] = 1 }, 128, 50, 0 },  { { [10] = 0xff, 0xff }, 96, 35, 4 },
	{ { 0 }, 96, 1, 3 },	       { { 0x20, 0x01 }, 32, 5, 5 },
	{ { 0x20, 0x02 }, 16, 30, 2 }, { { 0x3f, 0xfe }, 16, 1, 12 },
	{ { 0xfe, 0xc0 }, 10, 1, 11 }, { { 0xfc }, 7, 3, 13 },
	{ { 0 }, 0, 40, 1 },
};

static unsigned common_bits(const uint8_t *a, const uint8_t *b, unsigned max)
{
	unsigned bits = 0;

	while (bits < max && a[bits / 8] == b[bits / 8])
		bits += 8;
	while (bits < max &&
	       !((a[bits / 8] ^ b[bits / 8]) & (0x80 >> bits % 8)))
		bits++;
	return bits < max ? bits : max;
}

static const struct policy *policy_of(const struct in6_addr *addr)
{
	const struct policy *policy = policies;

	while (common_bits(addr->s6_addr, policy->prefix, policy->bits) <
	       policy->bits)
		policy++;
	return policy;
}

/* ---- Sources ------------------------------------------------------------- */

LEAF int weft__source_ask(const struct weft_addr *addr,
			  struct weft__source *ret_source)
{
	struct weft_addr from = { .bytes = sizeof(from.storage) };
	int fd = socket(weft_addr_family(addr), SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ret_source->usable = false;
	if (fd < 0)
		return errno == EAFNOSUPPORT ? 0 : -errno;
	if (connect(fd, weft_addr_sockaddr(addr),
		    weft_addr_sockaddr_bytes(addr)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&from.storage, &from.bytes) ==
		    0) {
		ret_source->usable = true;
		ret_source->addr = six_of(&from);
	}
	weft__syscall_close(fd);
	return 0;
}

static uint64_t key_of(const struct weft_addr *addr, const struct in6_addr *six)
{
	bool four = weft_addr_family(addr) == AF_INET;
	uint64_t key = four ? 1 : 2;

	key = key << 8 | scope_of(six);
	if (four)
		return key << 8 | six->s6_addr[12];
	for (int i = 0; i < 6; i++)
		key = key << 8 | six->s6_addr[i];
	return key;
}

static int source_of(struct weft__sources *sources,
		     const struct weft_addr *addr, const struct in6_addr *six,
		     uint64_t now_ns, const struct weft__source **ret_source)
{
	uint64_t key = key_of(addr, six);
	struct weft__source *known =
		&sources->known[key * 0x9e3779b97f4a7c15u >> 58];
	int r = 0;

	static_assert(WEFT__SOURCES == 1 << 6, "a place is 6 bits");
	*ret_source = known;
	if (known->looked_ns && known->key == key &&
	    now_ns - known->looked_ns < KEPT_NS)
		return 0;
	known->looked_ns = 0;
	r = sources->ask(addr, known);
	if (r < 0)
		return r;
	known->key = key;
	known->looked_ns = now_ns;
	return 0;
}

/* ---- Order --------------------------------------------------------------- */

static int rank_of(struct weft__sources *sources, const struct weft_addr *addr,
		   uint64_t now_ns, struct rank *ret_rank)
{
	struct in6_addr six = six_of(addr);
	const struct policy *policy = policy_of(&six);
	const struct weft__source *source;
	int r = source_of(sources, addr, &six, now_ns, &source);

	if (r < 0)
		return r;
	*ret_rank = (struct rank){
		.unusable = !source->usable,
		.precedence = policy->precedence,
		.scope = scope_of(&six),
	};
	if (!source->usable)
		return 0;
	ret_rank->scope_differs = scope_of(&source->addr) != ret_rank->scope;
	ret_rank->label_differs =
		policy_of(&source->addr)->label != policy->label;
	if (weft_addr_family(addr) == AF_INET6)
		ret_rank->common = common_bits(source->addr.s6_addr,
					       six.s6_addr, PREFIX_BITS);
	return 0;
}

static bool is_before(const struct rank *a, const struct rank *b)
{
	if (a->unusable != b->unusable)
		return b->unusable;
	if (a->scope_differs != b->scope_differs)
		return b->scope_differs;
	if (a->label_differs != b->label_differs)
		return b->label_differs;
	if (a->precedence != b->precedence)
		return a->precedence > b->precedence;
	if (a->scope != b->scope)
		return a->scope < b->scope;
	return a->common > b->common;
}

/* Those that are equal keep their order (rule 10). */
void weft__names_order(struct weft__sources *sources, struct weft_addr *addrs,
		       unsigned count, uint64_t now_ns)
{
	struct rank ranks[WEFT_RESOLVE_MAX];

	if (count < 2)
		return;
	for (unsigned i = 0; i < count; i++)
		if (rank_of(sources, &addrs[i], now_ns, &ranks[i]) < 0)
			return;
	for (unsigned i = 1; i < count; i++) {
		struct weft_addr addr = addrs[i];
		struct rank rank = ranks[i];
		unsigned at = i;

		for (; at > 0 && is_before(&rank, &ranks[at - 1]); at--) {
			addrs[at] = addrs[at - 1];
			ranks[at] = ranks[at - 1];
		}
		addrs[at] = addr;
		ranks[at] = rank;
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * Address - socket addresses to and from text.
 *
 * Every input (parse, from_sockaddr) ends in one canonical form, so that equal
 * addresses have equal bytes, except for the flow label of IPv6:
 *
 *   ADDR1  The length is exact for the family: that of sockaddr_in, that of
 *       sockaddr_in6, or for Unix as unix_bytes() says.
 *   ADDR2  All bytes of storage that do not belong to the address are zero.
 *   ADDR3  So a Unix path of the full 108 bytes, which has no NUL within its
 *       length, still has one behind it.
 *
 * Typed addresses are built separately and copied by memcpy: storage may not be
 * accessed through another struct's type.
 *
 * Rejected: scopes formatted by name.  That takes a system call per format, its
 * result changes when an interface is renamed, and it needs a descriptor, which
 * may not be free when an error must be logged.
 */
#include <weft/addr.h>

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	UNIX_HEAD_BYTES = offsetof(struct sockaddr_un, sun_path),
	UNIX_PATH_BYTES_MAX = sizeof(((struct sockaddr_un *)0)->sun_path),
	/* A byte of a name takes at most this much text: \xHH. */
	ESCAPE_BYTES = 4,
};

static_assert(UNIX_PATH_BYTES_MAX == 108, "the header names it");
static_assert(sizeof("unix:") + ESCAPE_BYTES * UNIX_PATH_BYTES_MAX <=
		      WEFT_ADDR_TEXT_BYTES,
	      "a Unix path fits");
static_assert(sizeof("[%4294967295]:65535") + INET6_ADDRSTRLEN <=
		      WEFT_ADDR_TEXT_BYTES,
	      "an IPv6 address fits");
/* ADDR3 needs one byte behind it. */
static_assert(sizeof(struct sockaddr_un) < sizeof(struct sockaddr_storage),
	      "a Unix address and a NUL fit");

static void addr_set(struct weft_addr *addr, const void *typed, size_t bytes)
{
	assert(bytes <= sizeof(addr->storage));
	memset(addr, 0, sizeof(*addr));
	memcpy(&addr->storage, typed, bytes);
	addr->bytes = (socklen_t)bytes;
}

/*
 * The exact length of a Unix address with @name_bytes of sun_path in use: a
 * path counts its NUL while there is room for it, as the kernel does, and
 * neither an abstract nor an absent name has one.
 */
static size_t unix_bytes(const struct sockaddr_un *un, size_t name_bytes)
{
	bool is_path = name_bytes > 0 && un->sun_path[0] != '\0';

	if (is_path && name_bytes < UNIX_PATH_BYTES_MAX)
		name_bytes++;
	return UNIX_HEAD_BYTES + name_bytes;
}

/* ---- Parse --------------------------------------------------------------- */

/* Parses @text, all of it, as a decimal number up to @max without leading
 * zeros. */
static int decimal_parse(const char *text, uint32_t max, uint32_t *ret_value)
{
	uint64_t value = 0;
	size_t i;

	if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
		return -EINVAL;
	for (i = 0; text[i] != '\0'; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		value = value * 10 + (uint64_t)(text[i] - '0');
		if (value > max)
			return -EINVAL;
	}
	*ret_value = (uint32_t)value;
	return 0;
}

static int port_parse(const char *text, in_port_t *ret_port)
{
	uint32_t port;
	int r;

	r = decimal_parse(text, UINT16_MAX, &port);
	if (r < 0)
		return r;
	*ret_port = htons((uint16_t)port);
	return 0;
}

/* Copies the text before @end, or fails if the copy has no room for it. */
static int part_copy(const char *text, const char *end, char *copy,
		     size_t copy_bytes)
{
	size_t bytes = (size_t)(end - text);

	if (bytes >= copy_bytes)
		return -EINVAL;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	return 0;
}

/* As if_nametoindex(), which does not distinguish a lack of descriptors from
 * other errors. */
static int interface_index(const char name[IF_NAMESIZE], uint32_t *ret_index)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	memcpy(request.ifr_name, name, strlen(name) + 1);
	r = ioctl(fd, SIOCGIFINDEX, &request) < 0 ? -errno : 0;
	close(fd);
	if (r == 0)
		*ret_index = (uint32_t)request.ifr_ifindex;
	return r;
}

/*
 * Parses the text before @end as a scope.  All digits are an index, so that the
 * output of format is never taken for a name.  The kernel would cut a name at a
 * colon and take the rest for the name of another interface.
 */
static int scope_parse(const char *text, const char *end, uint32_t *ret_scope)
{
	static const char digits[] = "0123456789";
	char scope[IF_NAMESIZE];
	bool is_index = text + strspn(text, digits) == end;
	int r;

	r = part_copy(text, end, scope, sizeof(scope));
	if (r < 0)
		return is_index ? r : -ENODEV;
	if (strpbrk(scope, ":/ \t\n\v\f\r"))
		return -EINVAL;
	if (is_index && scope[0] == '0')
		return -EINVAL;
	if (is_index)
		return decimal_parse(scope, UINT32_MAX, ret_scope);
	return interface_index(scope, ret_scope);
}

/* Parses @text as "[host]:port" or "[host%scope]:port". */
static int in6_parse(const char *text, struct weft_addr *addr)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	char host[INET6_ADDRSTRLEN];
	/* The last one, since the name of an interface may contain it. */
	const char *end = strrchr(text, ']');
	const char *scope, *host_end;
	int r;

	if (!end || end[1] != ':')
		return -EINVAL;
	r = port_parse(end + 2, &in6.sin6_port);
	if (r < 0)
		return r;
	scope = memchr(text, '%', (size_t)(end - text));
	host_end = scope ? scope : end;
	r = part_copy(text + 1, host_end, host, sizeof(host));
	if (r < 0)
		return r;
	if (inet_pton(AF_INET6, host, &in6.sin6_addr) != 1)
		return -EINVAL;
	if (scope) {
		r = scope_parse(scope + 1, end, &in6.sin6_scope_id);
		if (r < 0)
			return r;
	}
	addr_set(addr, &in6, sizeof(in6));
	return 0;
}

static int in_parse(const char *text, struct weft_addr *addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	char host[INET_ADDRSTRLEN];
	const char *end = strchr(text, ':');
	int r;

	if (!end)
		return -EINVAL;
	r = port_parse(end + 1, &in.sin_port);
	if (r < 0)
		return r;
	r = part_copy(text, end, host, sizeof(host));
	if (r < 0)
		return r;
	if (inet_pton(AF_INET, host, &in.sin_addr) != 1)
		return -EINVAL;
	addr_set(addr, &in, sizeof(in));
	return 0;
}

static int any_parse(const char *text, struct weft_addr *addr)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	int r;

	r = port_parse(text + 1, &in6.sin6_port);
	if (r < 0)
		return r;
	addr_set(addr, &in6, sizeof(in6));
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -EINVAL;
}

/* Takes one byte of a name from *@text, which may be an escape. */
static int name_byte(const char **text, bool escapes, char *ret_byte)
{
	const char *at = *text;
	int high, low;

	if (!escapes || at[0] != '\\') {
		*ret_byte = at[0];
		*text = at + 1;
		return 0;
	}
	if (at[1] != 'x')
		return -EINVAL;
	high = hex_digit(at[2]);
	if (high < 0)
		return high;
	low = hex_digit(at[3]);
	if (low < 0)
		return low;
	*ret_byte = (char)(high * 16 + low);
	*text = at + 4;
	return 0;
}

static int unix_parse(const char *text, bool escapes, struct weft_addr *addr)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	bool abstract = escapes && text[0] == '@';
	size_t n, head = abstract ? 1 : 0;
	char byte;
	int r;

	text += head;
	for (n = head; *text != '\0'; n++) {
		r = name_byte(&text, escapes, &byte);
		if (r < 0)
			return r;
		if (byte == '\0' && !abstract)
			return -EINVAL;
		if (n == UNIX_PATH_BYTES_MAX)
			return -ENAMETOOLONG;
		un.sun_path[n] = byte;
	}
	if (n == head)
		return -EINVAL;
	addr_set(addr, &un, unix_bytes(&un, n));
	return 0;
}

int weft_addr_parse(const char *text, struct weft_addr *ret_addr)
{
	struct weft_addr addr;
	int r;

	if (!text || !ret_addr)
		return -EINVAL;
	if (text[0] == '/')
		r = unix_parse(text, false, &addr);
	else if (strncmp(text, "unix:", 5) == 0)
		r = unix_parse(text + 5, true, &addr);
	else if (text[0] == '[')
		r = in6_parse(text, &addr);
	else if (text[0] == ':')
		r = any_parse(text, &addr);
	else
		r = in_parse(text, &addr);
	if (r < 0)
		return r;
	*ret_addr = addr;
	return 0;
}

/* ---- Format -------------------------------------------------------------- */

static size_t in_format(const struct weft_addr *addr, char *text)
{
	struct sockaddr_in in;
	char host[INET_ADDRSTRLEN] = "";

	memcpy(&in, &addr->storage, sizeof(in));
	inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
	return (size_t)snprintf(text, WEFT_ADDR_TEXT_BYTES, "%s:%u", host,
				(unsigned int)ntohs(in.sin_port));
}

static size_t in6_format(const struct weft_addr *addr, char *text)
{
	struct sockaddr_in6 in6;
	char host[INET6_ADDRSTRLEN] = "";
	char scope[sizeof("%4294967295")] = "";

	memcpy(&in6, &addr->storage, sizeof(in6));
	inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
	if (in6.sin6_scope_id != 0)
		snprintf(scope, sizeof(scope), "%%%u",
			 (unsigned int)in6.sin6_scope_id);
	return (size_t)snprintf(text, WEFT_ADDR_TEXT_BYTES, "[%s%s]:%u", host,
				scope, (unsigned int)ntohs(in6.sin6_port));
}

/* @at_start: an @ here would turn a path into an abstract name. */
static size_t byte_format(char byte, bool at_start, char *text)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char value = (unsigned char)byte;

	if (value >= 0x20 && value != 0x7f && byte != '\\' &&
	    !(at_start && byte == '@')) {
		text[0] = byte;
		return 1;
	}
	text[0] = '\\';
	text[1] = 'x';
	text[2] = digits[value >> 4];
	text[3] = digits[value & 15];
	return ESCAPE_BYTES;
}

static size_t unix_format(const struct weft_addr *addr, char *text)
{
	struct sockaddr_un un;
	size_t at, i = 0, n = addr->bytes - UNIX_HEAD_BYTES;

	memcpy(&un, &addr->storage, sizeof(un));
	memcpy(text, "unix:", 5);
	at = 5;
	if (n > 0 && un.sun_path[0] == '\0') {
		text[at++] = '@';
		i = 1;
	} else {
		n = strnlen(un.sun_path, n);
	}
	for (; i < n; i++)
		at += byte_format(un.sun_path[i], i == 0, text + at);
	text[at] = '\0';
	return at;
}

/* A caller may have filled in the struct, so the length is checked. */
static bool unix_bytes_valid(size_t bytes)
{
	return bytes >= UNIX_HEAD_BYTES && bytes <= sizeof(struct sockaddr_un);
}

int weft_addr_format(const struct weft_addr *addr, char *text,
		     size_t text_bytes)
{
	char whole[WEFT_ADDR_TEXT_BYTES];
	int family = addr ? weft_addr_family(addr) : AF_UNSPEC;
	size_t copied, bytes = 0;

	if (family == AF_INET)
		bytes = in_format(addr, whole);
	else if (family == AF_INET6)
		bytes = in6_format(addr, whole);
	else if (family == AF_UNIX && unix_bytes_valid(addr->bytes))
		bytes = unix_format(addr, whole);
	assert(bytes < sizeof(whole));
	if (text && text_bytes > 0) {
		copied = bytes < text_bytes ? bytes : text_bytes - 1;
		memcpy(text, whole, copied);
		text[copied] = '\0';
	}
	return bytes > 0 ? (int)bytes : -EINVAL;
}

/* ---- Sockaddr ------------------------------------------------------------ */

static int in_take(const void *from, size_t bytes, struct weft_addr *ret_addr)
{
	struct sockaddr_in in;

	if (bytes < sizeof(in))
		return -EINVAL;
	memcpy(&in, from, sizeof(in));
	memset(in.sin_zero, 0, sizeof(in.sin_zero));
	addr_set(ret_addr, &in, sizeof(in));
	return 0;
}

static int in6_take(const void *from, size_t bytes, struct weft_addr *ret_addr)
{
	struct sockaddr_in6 in6;

	if (bytes < sizeof(in6))
		return -EINVAL;
	memcpy(&in6, from, sizeof(in6));
	addr_set(ret_addr, &in6, sizeof(in6));
	return 0;
}

/*
 * For a path of the full 108 bytes the kernel returns a NUL behind it, and a
 * length that is one more than it accepts.
 */
static int unix_take(const void *from, size_t bytes, struct weft_addr *ret_addr)
{
	struct sockaddr_un un;
	const char *path = (const char *)from + UNIX_HEAD_BYTES;
	size_t n = bytes - UNIX_HEAD_BYTES;

	if (n > UNIX_PATH_BYTES_MAX + 1)
		return -EINVAL;
	if (n > 0 && path[0] != '\0')
		n = strnlen(path, n);
	if (n > UNIX_PATH_BYTES_MAX)
		return -EINVAL;
	memset(&un, 0, sizeof(un));
	un.sun_family = AF_UNIX;
	memcpy(un.sun_path, path, n);
	addr_set(ret_addr, &un, unix_bytes(&un, n));
	return 0;
}

int weft_addr_from_sockaddr(const struct sockaddr *sockaddr, socklen_t bytes,
			    struct weft_addr *ret_addr)
{
	/* Built separately, since @sockaddr may point into *@ret_addr. */
	struct weft_addr addr;
	sa_family_t family;
	int r;

	static_assert(offsetof(struct sockaddr, sa_family) == 0,
		      "the family comes first");
	if (!sockaddr || !ret_addr || bytes < sizeof(family))
		return -EINVAL;
	/* Copied, since @sockaddr need not be aligned. */
	memcpy(&family, (const void *)sockaddr, sizeof(family));
	if (family == AF_INET)
		r = in_take(sockaddr, bytes, &addr);
	else if (family == AF_INET6)
		r = in6_take(sockaddr, bytes, &addr);
	else if (family == AF_UNIX)
		r = unix_take(sockaddr, bytes, &addr);
	else
		r = -EAFNOSUPPORT;
	if (r < 0)
		return r;
	*ret_addr = addr;
	return 0;
}

const struct sockaddr *weft_addr_sockaddr(const struct weft_addr *addr)
{
	return (const struct sockaddr *)&addr->storage;
}

socklen_t weft_addr_sockaddr_bytes(const struct weft_addr *addr)
{
	return addr->bytes;
}

/* ---- Questions ----------------------------------------------------------- */

int weft_addr_family(const struct weft_addr *addr)
{
	return addr->storage.ss_family;
}

int weft_addr_port(const struct weft_addr *addr)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	switch (weft_addr_family(addr)) {
	case AF_INET:
		memcpy(&in, &addr->storage, sizeof(in));
		return ntohs(in.sin_port);
	case AF_INET6:
		memcpy(&in6, &addr->storage, sizeof(in6));
		return ntohs(in6.sin6_port);
	default:
		return -EAFNOSUPPORT;
	}
}

static bool in6_equal(const struct weft_addr *a, const struct weft_addr *b)
{
	struct sockaddr_in6 x, y;

	memcpy(&x, &a->storage, sizeof(x));
	memcpy(&y, &b->storage, sizeof(y));
	return x.sin6_port == y.sin6_port &&
	       x.sin6_scope_id == y.sin6_scope_id &&
	       memcmp(&x.sin6_addr, &y.sin6_addr, sizeof(x.sin6_addr)) == 0;
}

bool weft_addr_equal(const struct weft_addr *a, const struct weft_addr *b)
{
	if (weft_addr_family(a) != weft_addr_family(b))
		return false;
	if (weft_addr_family(a) == AF_INET6)
		return in6_equal(a, b);
	/* By ADDR1 and ADDR2 equal addresses have equal bytes. */
	return a->bytes == b->bytes &&
	       memcmp(&a->storage, &b->storage, sizeof(a->storage)) == 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The header of the PROXY protocol, read and written.
 *
 *	version 1	"PROXY TCP4 192.0.2.1 192.0.2.9 56324 443\r\n"
 *	version 2	signature, version and command, family and type,
 *			length | addresses | further fields
 *
 * Reading decides as early as it can: the first byte that no header has there
 * is an error, so that a client that speaks another protocol is not waited for.
 */
#include <weft/serve.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum { V1_BYTES_MAX = 107, V2_FIXED = 16, V2_BYTES_MAX = 65535 };
enum { UNIX_BYTES = 108 };

static const char signature[12] = "\r\n\r\n\0\r\nQUIT\n";
static const char v1_prefix[6] = "PROXY ";

/* As sizeof of the two above is exact, no NUL belongs to them. */
_Static_assert(sizeof(signature) == 12 && sizeof(v1_prefix) == 6, "");

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- Version 1 ----------------------------------------------------------- */

/* Takes a word and the byte behind it.  NULL: it does not fit. */
static const char *word_take(const char *at, char end, char *word, size_t room)
{
	const char *stop = strchr(at, end);

	if (!stop || stop == at || (size_t)(stop - at) >= room)
		return NULL;
	memcpy(word, at, (size_t)(stop - at));
	word[stop - at] = '\0';
	return stop + 1;
}

static bool v1_addr(int family, const char *host, const char *port,
		    struct weft_addr *ret_addr)
{
	char text[80];

	/* Hosts of the protocol have no scope, and are no names. */
	if (host[strspn(host, "0123456789abcdefABCDEF:.")])
		return false;
	snprintf(text, sizeof(text), family == AF_INET6 ? "[%s]:%s" : "%s:%s",
		 host, port);
	return weft_addr_parse(text, ret_addr) == 0 &&
	       weft_addr_family(ret_addr) == family;
}

/* Of "192.0.2.1 192.0.2.9 56324 443". */
static bool v1_addrs(int family, const char *at,
		     struct weft_proxy_header *header)
{
	char hosts[2][INET6_ADDRSTRLEN], ports[2][6];

	at = word_take(at, ' ', hosts[0], sizeof(hosts[0]));
	at = at ? word_take(at, ' ', hosts[1], sizeof(hosts[1])) : NULL;
	at = at ? word_take(at, ' ', ports[0], sizeof(ports[0])) : NULL;
	at = at ? word_take(at, '\r', ports[1], sizeof(ports[1])) : NULL;
	header->type = SOCK_STREAM;
	return at && !*at &&
	       v1_addr(family, hosts[0], ports[0], &header->source) &&
	       v1_addr(family, hosts[1], ports[1], &header->target);
}

static bool v1_line(const char *line, struct weft_proxy_header *header)
{
	static const char unknown[] = "UNKNOWN";
	size_t bytes = strlen(unknown);

	if (strncmp(line, unknown, bytes) == 0)
		return line[bytes] == ' ' || line[bytes] == '\r';
	if (strncmp(line, "TCP4 ", 5) == 0)
		return v1_addrs(AF_INET, line + 5, header);
	return strncmp(line, "TCP6 ", 5) == 0 &&
	       v1_addrs(AF_INET6, line + 5, header);
}

/* Of a line whose end is not there. */
static bool v1_begins(const char *line, size_t bytes)
{
	static const char *const words[] = { "UNKNOWN", "TCP4 ", "TCP6 " };

	for (int i = 0; i < 3; i++) {
		size_t word = strlen(words[i]);

		if (strncmp(line, words[i], least(bytes, word)) != 0)
			continue;
		if (bytes <= word)
			return true;
		line += word;
		if (i == 0)
			return *line == ' ';
		return !line[strspn(line, "0123456789abcdefABCDEF:. ")];
	}
	return false;
}

static ssize_t v1_parse(const char *data, size_t bytes,
			struct weft_proxy_header *header)
{
	const char *end = memchr(data, '\r', least(bytes, V1_BYTES_MAX - 1));
	/* Up to "\r", which is nowhere else. */
	size_t most = end ? (size_t)(end - data) + 1 : bytes;
	char line[V1_BYTES_MAX];

	if (memcmp(data, v1_prefix, least(most, sizeof(v1_prefix))) != 0)
		return -EBADMSG;
	if (most <= sizeof(v1_prefix))
		return -EAGAIN;
	if ((!end && most >= V1_BYTES_MAX - 1) || memchr(data, '\n', most) ||
	    memchr(data, '\0', most))
		return -EBADMSG;
	memcpy(line, data, most);
	line[most] = '\0';
	data += most;
	header->version = 1;
	if (!end)
		return v1_begins(line + sizeof(v1_prefix),
				 most - sizeof(v1_prefix)) ?
			       -EAGAIN :
			       -EBADMSG;
	if (!v1_line(line + sizeof(v1_prefix), header) ||
	    (bytes > most && *data != '\n'))
		return -EBADMSG;
	return bytes > most ? (ssize_t)most + 1 : -EAGAIN;
}

static int v1_format(const struct weft_proxy_header *header, char *buf,
		     size_t room)
{
	int family = weft_addr_family(&header->source), n;
	char hosts[2][INET6_ADDRSTRLEN], text[V1_BYTES_MAX + 1];
	const struct weft_addr *addrs[] = { &header->source, &header->target };

	if (header->tlvs_bytes || header->type == SOCK_DGRAM ||
	    family == AF_UNIX)
		return -EINVAL;
	for (int i = 0; i < 2 && family != AF_UNSPEC; i++) {
		const void *at = weft_addr_sockaddr(addrs[i]);
		const struct sockaddr_in *in = at;
		const struct sockaddr_in6 *in6 = at;

		at = family == AF_INET ? (const void *)&in->sin_addr :
					 (const void *)&in6->sin6_addr;
		inet_ntop(family, at, hosts[i], sizeof(hosts[i]));
	}
	if (family == AF_UNSPEC || header->local)
		n = snprintf(text, sizeof(text), "PROXY UNKNOWN\r\n");
	else
		n = snprintf(text, sizeof(text), "PROXY TCP%c %s %s %d %d\r\n",
			     family == AF_INET ? '4' : '6', hosts[0], hosts[1],
			     weft_addr_port(addrs[0]),
			     weft_addr_port(addrs[1]));
	if ((size_t)n > room)
		return -EMSGSIZE;
	memcpy(buf, text, (size_t)n);
	return n;
}

/* ---- Version 2 ----------------------------------------------------------- */

/* The bytes of both addresses; by the family's four bits. */
static const uint8_t addrs_bytes[] = { 0, 12, 36, 2 * UNIX_BYTES };

static unsigned number16(const unsigned char *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static void unix_addr(const unsigned char *from, struct weft_addr *ret_addr)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t bytes = UNIX_BYTES;

	memcpy(un.sun_path, from, UNIX_BYTES);
	while (bytes > 0 && !from[bytes - 1])
		bytes--;
	if (from[0])
		bytes = strnlen((const char *)from, UNIX_BYTES);
	(void)!weft_addr_from_sockaddr(
		(struct sockaddr *)&un,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes),
		ret_addr);
}

static void ip_addr(int family, const unsigned char *host,
		    const unsigned char *port, struct weft_addr *ret_addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	memcpy(&in.sin_addr, host, 4);
	memcpy(&in.sin_port, port, 2);
	memcpy(&in6.sin6_port, port, 2);
	if (family == AF_INET6)
		memcpy(&in6.sin6_addr, host, 16);
	(void)!(family == AF_INET ?
			weft_addr_from_sockaddr((struct sockaddr *)&in,
						sizeof(in), ret_addr) :
			weft_addr_from_sockaddr((struct sockaddr *)&in6,
						sizeof(in6), ret_addr));
}

static void v2_addrs(unsigned family, const unsigned char *at,
		     struct weft_proxy_header *header)
{
	if (family == 3) {
		unix_addr(at, &header->source);
		unix_addr(at + UNIX_BYTES, &header->target);
	} else if (family) {
		int af = family == 1 ? AF_INET : AF_INET6;
		size_t bytes = family == 1 ? 4 : 16;

		ip_addr(af, at, at + 2 * bytes, &header->source);
		ip_addr(af, at + bytes, at + 2 * bytes + 2, &header->target);
	}
}

static bool tlvs_are_whole(const struct weft_proxy_header *header)
{
	struct weft_proxy_tlv tlv;
	size_t at = 0;

	while (weft_proxy_tlv_next(header, &at, &tlv))
		;
	return at == header->tlvs_bytes;
}

/* Families and types count for nothing in a health check. */
static bool v2_is_known(unsigned family, unsigned type)
{
	return family <= 3 && type <= 2 && !family == !type;
}

/* Of a header whose end may not be there. */
static bool v2_begins(const unsigned char *data, size_t bytes)
{
	unsigned family, type;

	if (memcmp(data, signature, least(bytes, sizeof(signature))) != 0)
		return false;
	if (bytes > 12 && data[12] != 0x20 && data[12] != 0x21)
		return false;
	if (bytes <= 13 || data[12] == 0x20)
		return true;
	family = data[13] >> 4;
	type = data[13] & 15;
	return v2_is_known(family, type) &&
	       (bytes < V2_FIXED || number16(data + 14) >= addrs_bytes[family]);
}

/* The rest, once it is there. */
static bool v2_body(const unsigned char *data, size_t bytes,
		    struct weft_proxy_header *header)
{
	unsigned family = data[13] >> 4, type = data[13] & 15;
	size_t addrs;

	header->version = 2;
	header->local = !(data[12] & 15);
	if (!v2_is_known(family, type))
		return header->local;
	addrs = addrs_bytes[family];
	if (addrs > bytes)
		return header->local;
	header->tlvs = data + V2_FIXED + addrs;
	header->tlvs_bytes = bytes - addrs;
	if (!header->local) {
		header->type = type == 1 ? SOCK_STREAM :
			       type == 2 ? SOCK_DGRAM :
					   0;
		v2_addrs(family, data + V2_FIXED, header);
	}
	if (tlvs_are_whole(header))
		return true;
	/* The bytes in place of addresses that nobody knows are ignored. */
	header->tlvs_bytes = 0;
	return header->local || !family;
}

static ssize_t v2_parse(const unsigned char *data, size_t bytes,
			struct weft_proxy_header *header)
{
	size_t rest;

	if (!v2_begins(data, bytes))
		return -EBADMSG;
	if (bytes < V2_FIXED)
		return -EAGAIN;
	rest = number16(data + 14);
	if (bytes < V2_FIXED + rest)
		return -EAGAIN;
	return v2_body(data, rest, header) ? (ssize_t)(V2_FIXED + rest) :
					     -EBADMSG;
}

static void v2_put_addr(const struct weft_addr *addr, unsigned char *host,
			unsigned char *port)
{
	const void *at = weft_addr_sockaddr(addr);
	const struct sockaddr_in *in = at;
	const struct sockaddr_in6 *in6 = at;
	const struct sockaddr_un *un = at;

	switch (weft_addr_family(addr)) {
	case AF_INET:
		memcpy(host, &in->sin_addr, 4);
		memcpy(port, &in->sin_port, 2);
		break;
	case AF_INET6:
		memcpy(host, &in6->sin6_addr, 16);
		memcpy(port, &in6->sin6_port, 2);
		break;
	default:
		/* The storage is 0 behind its end. */
		memcpy(host, un->sun_path, UNIX_BYTES);
		break;
	}
}

static ssize_t v2_format(const struct weft_proxy_header *header,
			 unsigned char *buf, size_t room)
{
	static const uint8_t host_bytes[] = { 0, 4, 16, UNIX_BYTES };
	int af = weft_addr_family(&header->source);
	unsigned family = header->local	 ? 0 :
			  af == AF_INET	 ? 1 :
			  af == AF_INET6 ? 2 :
			  af == AF_UNIX	 ? 3 :
					   0;
	unsigned type = header->type == SOCK_DGRAM ? 2 : 1;
	size_t host = host_bytes[family], addrs = addrs_bytes[family];
	size_t rest = addrs + header->tlvs_bytes;

	if (!tlvs_are_whole(header) || rest > V2_BYTES_MAX)
		return -EINVAL;
	if (V2_FIXED + rest > room)
		return -EMSGSIZE;
	memcpy(buf, signature, sizeof(signature));
	buf[12] = header->local ? 0x20 : 0x21;
	buf[13] = (unsigned char)(family ? family << 4 | type : 0);
	buf[14] = (unsigned char)(rest >> 8);
	buf[15] = (unsigned char)rest;
	buf += V2_FIXED;
	if (family) {
		v2_put_addr(&header->source, buf, buf + 2 * host);
		v2_put_addr(&header->target, buf + host, buf + 2 * host + 2);
	}
	if (header->tlvs_bytes)
		memcpy(buf + addrs, header->tlvs, header->tlvs_bytes);
	return (ssize_t)(V2_FIXED + rest);
}

/* ---- Calls --------------------------------------------------------------- */

ssize_t weft_proxy_parse(const void *data, size_t bytes,
			 struct weft_proxy_header *ret_header)
{
	struct weft_proxy_header header = { .version = 0 };
	ssize_t n;

	if (bytes == 0)
		return -EAGAIN;
	n = *(const char *)data == v1_prefix[0] ?
		    v1_parse(data, bytes, &header) :
		    v2_parse(data, bytes, &header);
	if (n > 0)
		*ret_header = header;
	return n;
}

bool weft_proxy_tlv_next(const struct weft_proxy_header *header, size_t *at,
			 struct weft_proxy_tlv *ret_tlv)
{
	const unsigned char *from = header->tlvs;
	size_t left = header->tlvs_bytes - *at, bytes;

	if (left < 3)
		return false;
	from += *at;
	bytes = number16(from + 1);
	if (left - 3 < bytes)
		return false;
	*ret_tlv = (struct weft_proxy_tlv){
		.type = from[0],
		.value = from + 3,
		.bytes = bytes,
	};
	*at += 3 + bytes;
	return true;
}

ssize_t weft_proxy_format(const struct weft_proxy_header *header, void *buf,
			  size_t room)
{
	int type = header->type;

	if (weft_addr_family(&header->source) !=
		    weft_addr_family(&header->target) ||
	    (type && type != SOCK_STREAM && type != SOCK_DGRAM))
		return -EINVAL;
	switch (header->version) {
	case 1:
		return v1_format(header, buf, room);
	case 2:
		return v2_format(header, buf, room);
	default:
		return -EINVAL;
	}
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "target.h"

static int read_ipv4(struct weft_stream *client, struct weft_addr *ret_target)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int r = weft_stream_read_all(client, &in.sin_addr, 4, NULL);

	if (r == 0)
		r = weft_stream_read_all(client, &in.sin_port, 2, NULL);
	return r < 0 ? r :
		       weft_addr_from_sockaddr((struct sockaddr *)&in,
					       sizeof(in), ret_target);
}

static int read_ipv6(struct weft_stream *client, struct weft_addr *ret_target)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6 };
	int r = weft_stream_read_all(client, &in.sin6_addr, 16, NULL);

	if (r == 0)
		r = weft_stream_read_all(client, &in.sin6_port, 2, NULL);
	return r < 0 ? r :
		       weft_addr_from_sockaddr((struct sockaddr *)&in,
					       sizeof(in), ret_target);
}

/* Some clients send an address as a name. */
static int parse_name(const char *name, unsigned port,
		      struct weft_addr *ret_target)
{
	char text[256 + sizeof("[]:65535")];
	bool is_ipv6 = strchr(name, ':');

	snprintf(text, sizeof(text), is_ipv6 ? "[%s]:%u" : "%s:%u", name, port);
	/* A text without a host, or of a Unix socket, is also one of weft. */
	if (!*name || weft_addr_parse(text, ret_target) < 0 ||
	    weft_addr_family(ret_target) == AF_UNIX)
		return -EAFNOSUPPORT;
	return 0;
}

static int read_name(struct weft_stream *client, struct weft_addr *ret_target)
{
	unsigned char length, port[2];
	char name[256];
	int r = weft_stream_read_all(client, &length, 1, NULL);

	if (r == 0)
		r = weft_stream_read_all(client, name, length, NULL);
	if (r == 0)
		r = weft_stream_read_all(client, port, 2, NULL);
	if (r < 0)
		return r;
	name[length] = '\0';
	if (strlen(name) < length)
		return -EAFNOSUPPORT;
	return parse_name(name, port[0] * 256u + port[1], ret_target);
}

int target_read(struct weft_stream *client, unsigned kind,
		struct weft_addr *ret_target)
{
	switch (kind) {
	case KIND_IPV4:
		return read_ipv4(client, ret_target);
	case KIND_IPV6:
		return read_ipv6(client, ret_target);
	case KIND_NAME:
		return read_name(client, ret_target);
	default:
		return -EAFNOSUPPORT;
	}
}

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
static int name_take(const char *name, unsigned port, struct target *ret_target)
{
	bool is_ipv6 = strchr(name, ':');
	struct weft_addr addr;
	int r;

	snprintf(ret_target->text, sizeof(ret_target->text),
		 is_ipv6 ? "[%s]:%u" : "%s:%u", name, port);
	r = weft_addr_parse(ret_target->text, &addr);
	/* A text without a host, or of a Unix socket, is also one of weft. */
	if (!*name || (is_ipv6 && r < 0) ||
	    (r == 0 && weft_addr_family(&addr) == AF_UNIX))
		return -EAFNOSUPPORT;
	return 0;
}

static int read_name(struct weft_stream *client, struct target *ret_target)
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
	return name_take(name, port[0] * 256u + port[1], ret_target);
}

int target_read(struct weft_stream *client, unsigned kind,
		struct target *ret_target)
{
	struct weft_addr addr;
	int r = -EAFNOSUPPORT;

	if (kind == KIND_NAME)
		return read_name(client, ret_target);
	if (kind == KIND_IPV4)
		r = read_ipv4(client, &addr);
	else if (kind == KIND_IPV6)
		r = read_ipv6(client, &addr);
	if (r == 0)
		weft_addr_format(&addr, ret_target->text,
				 sizeof(ret_target->text));
	return r;
}

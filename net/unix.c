/* SPDX-License-Identifier: MIT */
#include <weft/net.h>

#include <errno.h>

#include "net/socket.h"

static int unix_parse(const char *address, struct weft_addr *ret_addr)
{
	int r = weft_addr_parse(address, ret_addr);

	if (r < 0)
		return r;
	return weft_addr_family(ret_addr) == AF_UNIX ? 0 : -EAFNOSUPPORT;
}

int weft_unix_listen(const char *address, const struct weft_socket_opts *opts)
{
	struct weft_addr addr;
	int r = unix_parse(address, &addr);

	return r < 0 ? r : weft__socket_listen(&addr, opts, NULL);
}

int weft_unix_connect(const char *address, const struct weft_socket_opts *opts)
{
	struct weft_addr addr;
	int r = unix_parse(address, &addr);

	return r < 0 ? r : weft__socket_connect(&addr, NULL, opts, NULL);
}

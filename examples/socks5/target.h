/* SPDX-License-Identifier: MIT */
#ifndef SOCKS5_TARGET_H
#define SOCKS5_TARGET_H

#include <weft/weft.h>

/* Kinds of addresses, also of answers. */
enum { KIND_IPV4 = 1, KIND_NAME = 3, KIND_IPV6 = 4 };

/* For weft_dial(): "name:port", or an address. */
struct target {
	char text[WEFT_ADDR_TEXT_BYTES];
};

/* Reads an address of that kind, and a port.  Suspends.  Returns 0,
 * -EAFNOSUPPORT (an unknown kind, or a name that cannot be one), or an error of
 * the stream. */
int target_read(struct weft_stream *client, unsigned kind,
		struct target *ret_target);

#endif

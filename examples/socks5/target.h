/* SPDX-License-Identifier: MIT */
#ifndef SOCKS5_TARGET_H
#define SOCKS5_TARGET_H

#include <weft/weft.h>

/* Kinds of addresses, also of answers. */
enum { KIND_IPV4 = 1, KIND_NAME = 3, KIND_IPV6 = 4 };

/* Reads an address of that kind, and a port.  Suspends.  Returns 0,
 * -EAFNOSUPPORT (an unknown kind, or a name that is no address), or an error of
 * the stream. */
int target_read(struct weft_stream *client, unsigned kind,
		struct weft_addr *ret_target);

#endif

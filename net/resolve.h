/* SPDX-License-Identifier: MIT */
/* Resolve - what dialling and listening need of it. */
#ifndef WEFT_NET_RESOLVE_H
#define WEFT_NET_RESOLVE_H

#include <stdbool.h>

#include <weft/addr.h>
#include <weft/resolve.h>

/* Is the text, which is no address, "name:port"? */
bool weft__is_name(const char *address);

#endif

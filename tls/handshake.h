/* SPDX-License-Identifier: MIT */
#ifndef WEFT_TLS_HANDSHAKE_H
#define WEFT_TLS_HANDSHAKE_H

#include "tls/profile.h"

/* The wishes of a client: a host, or NULL; ALPN names, or those of the context.
 */
struct weft__tls_hello {
	const char *host;
	struct weft__tls_alpn alpn;
};

/* As weft_tls_client(); with NULL for hello as weft_tls_server(). */
int weft__tls_shake_hands(struct weft_tls *tls,
			  struct weft_tls_context *context,
			  struct weft_stream *below,
			  const struct weft__tls_hello *hello);

#endif

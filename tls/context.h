/* SPDX-License-Identifier: MIT */
/*
 * Context - the profiles of a program: one for all connections, and further
 * ones with the certificates of servers that have names of their own.
 */
#ifndef WEFT_TLS_CONTEXT_H
#define WEFT_TLS_CONTEXT_H

#include "tls/profile.h"

/* The profile for a new connection, with a reference for the caller; it chooses
 * among the names during the handshake. */
SSL_CTX *weft__tls_context_get(struct weft_tls_context *context);

/* Is there a certificate for any name? */
bool weft__tls_context_can_serve(struct weft_tls_context *context);

#endif

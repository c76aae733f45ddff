/* SPDX-License-Identifier: MIT */
/*
 * TLS, in a build with libweft-tls.  A client's stream is all that the rest of
 * the server sees of it.
 */
#ifndef HTTP_SECURE_H
#define HTTP_SECURE_H

#include <weft/weft.h>

struct secure_context;
struct secure;

/* Reads a chain of certificates and its key; alpn is the protocol that clients
 * may ask for.  Returns NULL, and prints why, if they cannot be used. */
struct secure_context *secure_context_new(const char *cert_file,
					  const char *key_file,
					  const char *alpn);

/* Frees it, or does nothing if it is NULL. */
void secure_context_free(struct secure_context *context);

/* Takes over fd, and does the handshake.  Suspends, for ten seconds at most.
 * Returns NULL, with fd closed, if it fails. */
struct secure *secure_accept(struct secure_context *context, int fd);

/* The stream of what the client sends and receives. */
struct weft_stream *secure_stream(struct secure *secure);

/* Tells the client that nothing more comes.  Suspends.  Returns 0 or a negative
 * errno. */
int secure_shutdown(struct secure *secure);

/* Closes the connection. */
void secure_close(struct secure *secure);

#endif

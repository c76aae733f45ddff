/* SPDX-License-Identifier: MIT */
/*
 * Profile - the options of a context as OpenSSL takes them.  A profile is
 * immutable, but for its sessions; it is counted, and each connection keeps the
 * one with which it began.
 */
#ifndef WEFT_TLS_PROFILE_H
#define WEFT_TLS_PROFILE_H

#include <stdbool.h>
#include <weft/tls.h>

#include <openssl/ssl.h>

#include "tls/sessions.h"

/* Names of ALPN, each behind its length, as they are sent. */
struct weft__tls_alpn {
	unsigned bytes;
	unsigned char names[256];
};

/* Belongs to an SSL_CTX, which has the count. */
struct weft__tls_profile {
	/* Immutable. */
	enum weft_tls_verify verify;
	bool resumes;
	bool has_certificate;
	struct weft__tls_alpn alpn;
	struct weft__tls_sessions sessions;
	pthread_mutex_t lock;
	bool needs_roots; /* the system's; under the lock */
};

/* Checks the options, and makes an SSL_CTX that has a profile: as
 * weft_tls_context_new(). */
int weft__tls_profile_new(const struct weft_tls_opts *opts, SSL_CTX **ret_ssl);

struct weft__tls_profile *weft__tls_profile(const SSL_CTX *ssl);

/* Encodes "h2,http/1.1".  False: it is no such list. */
bool weft__tls_alpn(const char *names, struct weft__tls_alpn *ret_alpn);

/* To be called before the peer's certificates are verified: reads the roots of
 * the system, which takes some milliseconds, unless they are there.  False: no
 * memory. */
bool weft__tls_profile_roots(SSL_CTX *ssl);

/* A server goes on with the certificate and the ALPN names of another profile,
 * of which it takes over the reference.  False: no memory. */
bool weft__tls_profile_serve(SSL *ssl, SSL_CTX *named);

/* A client keeps its sessions under this name, which lasts as long as the
 * connection. */
bool weft__tls_profile_name(SSL *ssl, const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Sessions - those that clients of a context may resume, by the name of the
 * server.
 */
#ifndef WEFT_TLS_SESSIONS_H
#define WEFT_TLS_SESSIONS_H

#include <pthread.h>
#include <stdbool.h>

#include <openssl/ssl.h>

enum { WEFT__TLS_SESSIONS_MAX = 128 };

struct weft__tls_session {
	char *name;
	SSL_SESSION *session;
};

struct weft__tls_sessions {
	pthread_mutex_t lock;
	/* Under the lock; oldest first. */
	struct weft__tls_session *kept;
	unsigned count;
};

void weft__tls_sessions_init(struct weft__tls_sessions *sessions);
void weft__tls_sessions_fini(struct weft__tls_sessions *sessions);

/* Keeps a session, which belongs to the cache then; or false: no memory. */
bool weft__tls_sessions_put(struct weft__tls_sessions *sessions,
			    const char *name, SSL_SESSION *session);

/* The newest session for that name, for the caller to free; or NULL.  One of
 * TLS 1.3 is not given again: others could tell that both are of one client. */
SSL_SESSION *weft__tls_sessions_get(struct weft__tls_sessions *sessions,
				    const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Sessions that may be resumed: a short list in the order of age, which is
 * searched from its young end.
 */
#include <string.h>

#include "tls/sessions.h"

#include <openssl/crypto.h>

void weft__tls_sessions_init(struct weft__tls_sessions *sessions)
{
	*sessions = (struct weft__tls_sessions){ .count = 0 };
	pthread_mutex_init(&sessions->lock, NULL);
}

static void entry_free(struct weft__tls_session *entry)
{
	OPENSSL_free(entry->name);
	SSL_SESSION_free(entry->session);
}

static void remove_at(struct weft__tls_sessions *sessions, unsigned at)
{
	sessions->count--;
	memmove(&sessions->kept[at], &sessions->kept[at + 1],
		(sessions->count - at) * sizeof(*sessions->kept));
}

void weft__tls_sessions_fini(struct weft__tls_sessions *sessions)
{
	for (unsigned i = 0; i < sessions->count; i++)
		entry_free(&sessions->kept[i]);
	OPENSSL_free(sessions->kept);
	pthread_mutex_destroy(&sessions->lock);
}

/* Under the lock. */
static bool keep(struct weft__tls_sessions *sessions, char *name,
		 SSL_SESSION *session)
{
	if (!sessions->kept)
		sessions->kept = OPENSSL_zalloc(WEFT__TLS_SESSIONS_MAX *
						sizeof(*sessions->kept));
	if (!sessions->kept)
		return false;
	if (sessions->count == WEFT__TLS_SESSIONS_MAX) {
		entry_free(&sessions->kept[0]);
		remove_at(sessions, 0);
	}
	sessions->kept[sessions->count++] = (struct weft__tls_session){
		.name = name,
		.session = session,
	};
	return true;
}

bool weft__tls_sessions_put(struct weft__tls_sessions *sessions,
			    const char *name, SSL_SESSION *session)
{
	char *copy = OPENSSL_strdup(name);
	bool kept = false;

	if (!copy)
		return false;
	pthread_mutex_lock(&sessions->lock);
	kept = keep(sessions, copy, session);
	pthread_mutex_unlock(&sessions->lock);
	if (!kept)
		OPENSSL_free(copy);
	return kept;
}

/* Under the lock. */
static SSL_SESSION *find(struct weft__tls_sessions *sessions, const char *name)
{
	for (unsigned i = sessions->count; i-- > 0;) {
		struct weft__tls_session *entry = &sessions->kept[i];
		SSL_SESSION *session = entry->session;

		if (strcmp(entry->name, name) != 0)
			continue;
		if (SSL_SESSION_get_protocol_version(session) <
		    TLS1_3_VERSION) {
			SSL_SESSION_up_ref(session);
			return session;
		}
		OPENSSL_free(entry->name);
		remove_at(sessions, i);
		return session;
	}
	return NULL;
}

SSL_SESSION *weft__tls_sessions_get(struct weft__tls_sessions *sessions,
				    const char *name)
{
	SSL_SESSION *session;

	pthread_mutex_lock(&sessions->lock);
	session = find(sessions, name);
	pthread_mutex_unlock(&sessions->lock);
	return session;
}

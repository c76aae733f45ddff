/* SPDX-License-Identifier: MIT */
/*
 * Contexts: which profile a connection takes.
 *
 * A handshake takes the profile for all when it begins.  If the client asks for
 * a name that has a profile of its own, it takes the certificate and the ALPN
 * names of that one.  Profiles are replaced under the lock, and live as long as
 * a connection has them.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "tls/context.h"
#include "tls/error.h"

struct named {
	char *name;
	SSL_CTX *ssl;
};

struct weft_tls_context {
	pthread_mutex_t lock;
	/* Under the lock. */
	SSL_CTX *all;
	struct named *named;
	size_t count;
};

/* ---- Names --------------------------------------------------------------- */

/* A pattern "*.example.org" stands for one label. */
static bool matches(const char *pattern, const char *name)
{
	const char *rest;

	if (strcasecmp(pattern, name) == 0)
		return true;
	rest = strchr(name, '.');
	return pattern[0] == '*' && pattern[1] == '.' && rest && rest != name &&
	       strcasecmp(pattern + 1, rest) == 0;
}

/* Under the lock: the name itself before a pattern. */
static SSL_CTX *find(const struct weft_tls_context *context, const char *name)
{
	SSL_CTX *found = NULL;

	for (size_t i = 0; i < context->count; i++) {
		const struct named *named = &context->named[i];

		if (strcasecmp(named->name, name) == 0)
			return named->ssl;
		if (matches(named->name, name))
			found = named->ssl;
	}
	return found;
}

/* The client of this connection has asked for a server.  Of the profile that is
 * found, the connection takes the certificate and the ALPN names alone:
 * SSL_set_SSL_CTX() would let the client choose the roots and the ciphers. */
static int choose(SSL *ssl, int *alert, void *arg)
{
	struct weft_tls_context *context = arg;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	SSL_CTX *found;

	if (!name || !SSL_is_server(ssl))
		return SSL_TLSEXT_ERR_OK;
	pthread_mutex_lock(&context->lock);
	found = find(context, name);
	if (found)
		SSL_CTX_up_ref(found);
	pthread_mutex_unlock(&context->lock);
	if (!found || weft__tls_profile_serve(ssl, found))
		return SSL_TLSEXT_ERR_OK;
	*alert = SSL_AD_INTERNAL_ERROR;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

SSL_CTX *weft__tls_context_get(struct weft_tls_context *context)
{
	SSL_CTX *all;

	pthread_mutex_lock(&context->lock);
	all = context->all;
	SSL_CTX_up_ref(all);
	pthread_mutex_unlock(&context->lock);
	return all;
}

bool weft__tls_context_can_serve(struct weft_tls_context *context)
{
	bool can;

	pthread_mutex_lock(&context->lock);
	can = context->count ||
	      weft__tls_profile(context->all)->has_certificate;
	pthread_mutex_unlock(&context->lock);
	return can;
}

/* ---- The calls ----------------------------------------------------------- */

int weft_tls_context_new(const struct weft_tls_opts *opts,
			 struct weft_tls_context **ret_context)
{
	struct weft_tls_context *context;
	SSL_CTX *all;
	int r = weft__tls_profile_new(opts, &all);

	if (r < 0)
		return r;
	context = OPENSSL_zalloc(sizeof(*context));
	if (!context) {
		SSL_CTX_free(all);
		return -ENOMEM;
	}
	pthread_mutex_init(&context->lock, NULL);
	SSL_CTX_set_tlsext_servername_callback(all, choose);
	SSL_CTX_set_tlsext_servername_arg(all, context);
	context->all = all;
	*ret_context = context;
	return 0;
}

/* Under the lock: where the profile for that name is, a new place if it has
 * none.  NULL: no memory. */
static SSL_CTX **place_of(struct weft_tls_context *context, const char *name)
{
	struct named *named;

	for (size_t i = 0; i < context->count; i++)
		if (strcasecmp(context->named[i].name, name) == 0)
			return &context->named[i].ssl;
	named = OPENSSL_realloc(context->named,
				(context->count + 1) * sizeof(*named));
	if (!named)
		return NULL;
	context->named = named;
	named[context->count].name = OPENSSL_strdup(name);
	named[context->count].ssl = NULL;
	if (!named[context->count].name)
		return NULL;
	return &named[context->count++].ssl;
}

int weft_tls_context_set(struct weft_tls_context *context,
			 const char *server_name,
			 const struct weft_tls_opts *opts)
{
	SSL_CTX *fresh, *old = NULL, **place;
	int r = weft__tls_profile_new(opts, &fresh);

	if (r < 0)
		return r;
	if (server_name && !weft__tls_profile(fresh)->has_certificate) {
		SSL_CTX_free(fresh);
		if (opts)
			weft__tls_say(opts->error, opts->error_bytes,
				      "a name without a certificate");
		return -EINVAL;
	}
	SSL_CTX_set_tlsext_servername_callback(fresh, choose);
	SSL_CTX_set_tlsext_servername_arg(fresh, context);
	pthread_mutex_lock(&context->lock);
	place = server_name ? place_of(context, server_name) : &context->all;
	if (place) {
		old = *place;
		*place = fresh;
	}
	pthread_mutex_unlock(&context->lock);
	/* The last reference frees a profile, outside of the lock. */
	SSL_CTX_free(place ? old : fresh);
	return place ? 0 : -ENOMEM;
}

void weft_tls_context_free(struct weft_tls_context *context)
{
	if (!context)
		return;
	for (size_t i = 0; i < context->count; i++) {
		OPENSSL_free(context->named[i].name);
		SSL_CTX_free(context->named[i].ssl);
	}
	OPENSSL_free(context->named);
	SSL_CTX_free(context->all);
	pthread_mutex_destroy(&context->lock);
	OPENSSL_free(context);
}

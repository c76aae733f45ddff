/* SPDX-License-Identifier: MIT */
/*
 * Profiles: from the options of a program to an SSL_CTX, which serves clients
 * and servers.
 *
 * Servers give out tickets, and keep no sessions of their own.  Clients keep
 * the sessions in the profile, by name: all of them were verified as the
 * profile asks for.
 */
#include "tls/profile.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "tls/error.h"

static const struct weft_tls_opts defaults = WEFT_TLS_OPTS_INIT;

/* Where OpenSSL keeps the profile of an SSL_CTX, and, of an SSL, the name and
 * the SSL_CTX of the server that the client asked for. */
static int profile_at, name_at, named_at;

static void profile_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int at,
			 long argl, void *argp)
{
	struct weft__tls_profile *profile = ptr;

	(void)parent, (void)data, (void)at, (void)argl, (void)argp;
	if (!profile)
		return;
	weft__tls_sessions_fini(&profile->sessions);
	pthread_mutex_destroy(&profile->lock);
	OPENSSL_free(profile);
}

static void named_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int at,
		       long argl, void *argp)
{
	(void)parent, (void)data, (void)at, (void)argl, (void)argp;
	SSL_CTX_free(ptr);
}

static void take_places(void)
{
	profile_at =
		SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, profile_free);
	name_at = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	named_at = SSL_get_ex_new_index(0, NULL, NULL, NULL, named_free);
}

struct weft__tls_profile *weft__tls_profile(const SSL_CTX *ssl)
{
	return SSL_CTX_get_ex_data(ssl, profile_at);
}

bool weft__tls_profile_name(SSL *ssl, const char *name)
{
	return SSL_set_ex_data(ssl, name_at, (void *)(uintptr_t)name) == 1;
}

bool weft__tls_profile_roots(SSL_CTX *ssl)
{
	struct weft__tls_profile *profile = weft__tls_profile(ssl);
	bool has = true;

	pthread_mutex_lock(&profile->lock);
	if (profile->needs_roots)
		has = SSL_CTX_set_default_verify_paths(ssl);
	profile->needs_roots = !has;
	pthread_mutex_unlock(&profile->lock);
	return has;
}

/* ---- PEM ----------------------------------------------------------------- */

/* A file, or a text.  NULL: see the error queue. */
static BIO *open_pem(const char *file, const char *text)
{
	if (file)
		return BIO_new_file(file, "r");
	if (strlen(text) > INT_MAX)
		return NULL;
	return BIO_new_mem_buf(text, (int)strlen(text));
}

/* A key that is encrypted is not asked a password for. */
static int no_password(char *buf, int bytes, int writes, void *arg)
{
	(void)buf, (void)bytes, (void)writes, (void)arg;
	return -1;
}

static X509 *next_certificate(BIO *pem)
{
	return PEM_read_bio_X509(pem, NULL, no_password, NULL);
}

/* Has the reading of certificates ended at the end of the text? */
static bool at_end(void)
{
	unsigned long error = ERR_peek_last_error();

	if (ERR_GET_LIB(error) != ERR_LIB_PEM ||
	    ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
		return false;
	ERR_clear_error();
	return true;
}

static bool use_chain(SSL_CTX *ssl, BIO *pem)
{
	X509 *certificate = next_certificate(pem);
	bool used = certificate && SSL_CTX_use_certificate(ssl, certificate);

	X509_free(certificate);
	while (used && (certificate = next_certificate(pem))) {
		/* The context owns what it takes. */
		used = SSL_CTX_add0_chain_cert(ssl, certificate);
		if (!used)
			X509_free(certificate);
	}
	return used && at_end();
}

static bool use_key(SSL_CTX *ssl, BIO *pem)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_password, NULL);
	bool used = key && SSL_CTX_use_PrivateKey(ssl, key) &&
		    SSL_CTX_check_private_key(ssl);

	EVP_PKEY_free(key);
	return used;
}

/* Clients that are asked for a certificate are told which roots are taken.  To
 * OpenSSL only certificates that sign themselves are roots, unless told so. */
static bool use_roots(SSL_CTX *ssl, BIO *pem)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ssl);
	bool used = X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	X509 *certificate;
	bool some = false;

	while (used && (certificate = next_certificate(pem))) {
		used = X509_STORE_add_cert(store, certificate) &&
		       SSL_CTX_add_client_CA(ssl, certificate);
		X509_free(certificate);
		some = true;
	}
	return used && some && at_end();
}

static bool use_pem(SSL_CTX *ssl, const char *file, const char *text,
		    bool (*use)(SSL_CTX *ssl, BIO *pem))
{
	BIO *pem = open_pem(file, text);
	bool used = pem && use(ssl, pem);

	BIO_free(pem);
	return used;
}

/* ---- ALPN ---------------------------------------------------------------- */

bool weft__tls_alpn(const char *names, struct weft__tls_alpn *ret_alpn)
{
	const char *end;
	unsigned at = 0;

	for (; names; names = *end ? end + 1 : NULL) {
		size_t bytes;

		end = strchrnul(names, ',');
		bytes = (size_t)(end - names);
		if (!bytes || bytes > 255 ||
		    at + 1 + bytes > sizeof(ret_alpn->names))
			return false;
		ret_alpn->names[at++] = (unsigned char)bytes;
		memcpy(ret_alpn->names + at, names, bytes);
		at += (unsigned)bytes;
	}
	ret_alpn->bytes = at;
	return true;
}

/* The server's preference counts.  One without names takes none. */
static int choose_alpn(SSL *ssl, const unsigned char **out,
		       unsigned char *out_bytes, const unsigned char *in,
		       unsigned in_bytes, void *arg)
{
	const SSL_CTX *named = SSL_get_ex_data(ssl, named_at);
	const struct weft__tls_profile *profile =
		named ? weft__tls_profile(named) : arg;
	unsigned char *chosen;

	if (!profile->alpn.bytes)
		return SSL_TLSEXT_ERR_NOACK;
	if (SSL_select_next_proto(&chosen, out_bytes, profile->alpn.names,
				  profile->alpn.bytes, in,
				  in_bytes) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* ---- Names of servers ---------------------------------------------------- */

/* A key of another kind than that of the profile for all has a place of its own
 * in the SSL: both would be there. */
static bool use_certificate_of(SSL *ssl, SSL_CTX *named)
{
	STACK_OF(X509) *chain = NULL;

	SSL_certs_clear(ssl);
	return SSL_CTX_get0_chain_certs(named, &chain) &&
	       SSL_use_cert_and_key(ssl, SSL_CTX_get0_certificate(named),
				    SSL_CTX_get0_privatekey(named), chain, 1);
}

bool weft__tls_profile_serve(SSL *ssl, SSL_CTX *named)
{
	/* A client may be asked to say hello once more. */
	SSL_CTX *old = SSL_get_ex_data(ssl, named_at);

	if (SSL_set_ex_data(ssl, named_at, named) != 1) {
		SSL_CTX_free(named);
		return false;
	}
	SSL_CTX_free(old);
	return use_certificate_of(ssl, named);
}

/* ---- The whole ----------------------------------------------------------- */

/* A client has a session, of which it passes its reference on. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
	struct weft__tls_profile *profile =
		weft__tls_profile(SSL_get_SSL_CTX(ssl));
	const char *name = SSL_get_ex_data(ssl, name_at);

	return name && SSL_SESSION_is_resumable(session) &&
	       weft__tls_sessions_put(&profile->sessions, name, session);
}

static bool attach(SSL_CTX *ssl, const struct weft_tls_opts *opts)
{
	struct weft__tls_profile *profile = OPENSSL_zalloc(sizeof(*profile));

	if (!profile)
		return false;
	weft__tls_sessions_init(&profile->sessions);
	pthread_mutex_init(&profile->lock, NULL);
	profile->verify = opts->verify;
	profile->resumes = !(opts->flags & WEFT_TLS_NO_RESUMPTION);
	profile->has_certificate = opts->cert_file || opts->cert_pem;
	if (SSL_CTX_set_ex_data(ssl, profile_at, profile) == 1)
		return true;
	profile_free(NULL, profile, NULL, 0, 0, NULL);
	return false;
}

static void set_modes(SSL_CTX *ssl, bool resumes)
{
	static const unsigned char id[] = "weft";

	/* The chain is what the program gives, and is not looked for in each
	 * handshake. */
	SSL_CTX_set_mode(ssl,
			 SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION |
					 SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_session_id_context(ssl, id, sizeof(id) - 1);
	SSL_CTX_set_session_cache_mode(
		ssl,
		resumes ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL :
			  SSL_SESS_CACHE_OFF);
	if (resumes) {
		SSL_CTX_sess_set_new_cb(ssl, keep_session);
		/* OpenSSL gives two, and making one takes a twentieth of the
		 * handshake. */
		SSL_CTX_set_num_tickets(ssl, 1);
	} else {
		SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET);
		SSL_CTX_set_num_tickets(ssl, 0);
	}
}

/* 0, or -EINVAL. */
static int set_choices(SSL_CTX *ssl, const struct weft_tls_opts *opts)
{
	struct weft__tls_profile *profile = weft__tls_profile(ssl);
	unsigned least = opts->version_min ? opts->version_min : WEFT_TLS_1_2;

	set_modes(ssl, profile->resumes);
	if (!SSL_CTX_set_min_proto_version(ssl, (int)least) ||
	    !SSL_CTX_set_max_proto_version(ssl, (int)opts->version_max) ||
	    (opts->ciphers && !SSL_CTX_set_cipher_list(ssl, opts->ciphers)) ||
	    (opts->ciphersuites &&
	     !SSL_CTX_set_ciphersuites(ssl, opts->ciphersuites)))
		return -EINVAL;
	SSL_CTX_set_alpn_select_cb(ssl, choose_alpn, profile);
	if (!opts->alpn)
		return 0;
	if (!weft__tls_alpn(opts->alpn, &profile->alpn)) {
		weft__tls_say(opts->error, opts->error_bytes,
			      "no list of ALPN names");
		return -EINVAL;
	}
	/* 0 is success. */
	return SSL_CTX_set_alpn_protos(ssl, profile->alpn.names,
				       profile->alpn.bytes) ?
		       -ENOMEM :
		       0;
}

/* 0, or -EBADMSG. */
static int set_certificates(SSL_CTX *ssl, const struct weft_tls_opts *opts)
{
	struct weft__tls_profile *profile = weft__tls_profile(ssl);
	bool used = true;

	if (opts->ca_file || opts->ca_pem)
		used = use_pem(ssl, opts->ca_file, opts->ca_pem, use_roots);
	else
		profile->needs_roots = opts->verify != WEFT_TLS_VERIFY_NONE;
	/* A server that takes any client does not need them. */
	if (!profile->has_certificate || opts->verify)
		used = used && weft__tls_profile_roots(ssl);
	if (used && (opts->cert_file || opts->cert_pem))
		used = use_pem(ssl, opts->cert_file, opts->cert_pem,
			       use_chain) &&
		       use_pem(ssl, opts->key_file, opts->key_pem, use_key);
	return used ? 0 : -EBADMSG;
}

static bool is_version(uint32_t version)
{
	return version == 0 || version == WEFT_TLS_1_2 ||
	       version == WEFT_TLS_1_3;
}

static const char *what_is_wrong(const struct weft_tls_opts *opts)
{
	if (opts->size != sizeof(*opts))
		return "the options have another size";
	if (opts->flags & ~WEFT_TLS_NO_RESUMPTION)
		return "a flag that is not known";
	if ((unsigned)opts->verify > WEFT_TLS_VERIFY_REQUIRED)
		return "no value of verify";
	if (!is_version(opts->version_min) || !is_version(opts->version_max) ||
	    (opts->version_max && opts->version_min > opts->version_max))
		return "versions that are none";
	if ((opts->cert_file && opts->cert_pem) ||
	    (opts->key_file && opts->key_pem) ||
	    (opts->ca_file && opts->ca_pem))
		return "a file and a text";
	if ((opts->cert_file || opts->cert_pem) !=
	    (opts->key_file || opts->key_pem))
		return "a certificate without its key, or the other way round";
	return NULL;
}

static int fill_in(SSL_CTX *ssl, const struct weft_tls_opts *opts)
{
	int r;

	if (!attach(ssl, opts))
		return -ENOMEM;
	r = set_choices(ssl, opts);
	return r < 0 ? r : set_certificates(ssl, opts);
}

int weft__tls_profile_new(const struct weft_tls_opts *opts, SSL_CTX **ret_ssl)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *wrong;
	SSL_CTX *ssl;
	int r = -ENOMEM;

	opts = opts ? opts : &defaults;
	wrong = what_is_wrong(opts);
	if (wrong) {
		if (opts->size == sizeof(*opts))
			weft__tls_say(opts->error, opts->error_bytes, wrong);
		return -EINVAL;
	}
	pthread_once(&once, take_places);
	ERR_clear_error();
	ssl = SSL_CTX_new(TLS_method());
	if (ssl)
		r = fill_in(ssl, opts);
	if (r < 0) {
		r = weft__tls_error_take_setup(r, opts->error,
					       opts->error_bytes);
		SSL_CTX_free(ssl);
		return r;
	}
	/* Reading may leave a note. */
	ERR_clear_error();
	*ret_ssl = ssl;
	return 0;
}

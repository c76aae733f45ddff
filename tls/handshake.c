/* SPDX-License-Identifier: MIT */
/*
 * Handshakes, and their results.  A handshake has its connection alone: no
 * other task knows of it until it is over.
 */
#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "tls/connection.h"
#include "tls/error.h"
#include "tls/handshake.h"

/* ---- A new connection ---------------------------------------------------- */

static int verify_mode(enum weft_tls_verify verify, bool serves)
{
	switch (verify) {
	case WEFT_TLS_VERIFY_NONE:
		return SSL_VERIFY_NONE;
	case WEFT_TLS_VERIFY_OPTIONAL:
		return SSL_VERIFY_PEER;
	case WEFT_TLS_VERIFY_REQUIRED:
		return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	default:
		return serves ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
	}
}

/* As certificates have it: an address of IPv6 without brackets and scope, a
 * name without the dot at its end.  NULL: no memory. */
static char *plain_host(const char *host)
{
	size_t bytes = strlen(host), scope;

	if (!strchr(host, ':')) {
		bytes -= bytes > 1 && host[bytes - 1] == '.';
		return OPENSSL_strndup(host, bytes);
	}
	if (*host == '[' && host[bytes - 1] == ']') {
		host++;
		bytes -= 2;
	}
	scope = strcspn(host, "%");
	return OPENSSL_strndup(host, scope < bytes ? scope : bytes);
}

/* Of OpenSSL's hosts one with a dot at its beginning stands for all names below
 * it, and one with an asterisk is found in a certificate that has the same. */
static bool is_name(const char *host)
{
	static const char of_labels[] = "abcdefghijklmnopqrstuvwxyz"
					"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789-_";

	for (;;) {
		size_t bytes = strspn(host, of_labels);

		if (bytes == 0)
			return false;
		if (host[bytes] != '.')
			return host[bytes] == '\0';
		host += bytes + 1;
	}
}

/* The name that the server's certificate must have, and is asked for. */
static bool set_host(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

	X509_VERIFY_PARAM_set_hostflags(
		param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
			       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (X509_VERIFY_PARAM_set1_ip_asc(param, host))
		return true;
	return is_name(host) && SSL_set1_host(ssl, host) &&
	       SSL_set_tlsext_host_name(ssl, host);
}

/* A session from before, if there is one. */
static void resume(struct weft__tls *conn, struct weft__tls_profile *profile)
{
	SSL_SESSION *session;

	if (!profile->resumes || !weft__tls_profile_name(conn->ssl, conn->host))
		return;
	session = weft__tls_sessions_get(&profile->sessions, conn->host);
	if (session)
		(void)SSL_set_session(conn->ssl, session);
	SSL_SESSION_free(session);
}

/* 0, -EINVAL, -ENOMEM. */
static int prepare_client(struct weft__tls *conn,
			  struct weft__tls_profile *profile,
			  const struct weft__tls_hello *hello)
{
	const char *host = hello->host;

	SSL_set_connect_state(conn->ssl);
	if (!weft__tls_profile_roots(SSL_get_SSL_CTX(conn->ssl)))
		return -ENOMEM;
	if (hello->alpn.bytes &&
	    SSL_set_alpn_protos(conn->ssl, hello->alpn.names,
				hello->alpn.bytes) != 0)
		return -ENOMEM;
	if (!host)
		return SSL_get_verify_mode(conn->ssl) == SSL_VERIFY_NONE ?
			       0 :
			       -EINVAL;
	/* OpenSSL takes an empty name for none, and would not check it. */
	if (!*host)
		return -EINVAL;
	conn->host = plain_host(host);
	if (!conn->host)
		return -ENOMEM;
	if (!set_host(conn->ssl, conn->host))
		return -EINVAL;
	resume(conn, profile);
	return 0;
}

/* Under the lock, as OpenSSL is called.  hello: NULL for a server. */
static int prepare(struct weft__tls *conn, struct weft_tls_context *context,
		   const struct weft__tls_hello *hello)
{
	bool serves = !hello;
	SSL_CTX *all = weft__tls_context_get(context);
	struct weft__tls_profile *profile = weft__tls_profile(all);
	int r = -ENOMEM;

	conn->ssl = SSL_new(all);
	if (conn->ssl && weft__tls_attach(conn)) {
		SSL_set_verify(conn->ssl, verify_mode(profile->verify, serves),
			       NULL);
		if (serves)
			SSL_set_accept_state(conn->ssl);
		r = serves ? 0 : prepare_client(conn, profile, hello);
	}
	/* The SSL has its own reference. */
	SSL_CTX_free(all);
	return r;
}

/* ---- The handshake ------------------------------------------------------- */

static int step(struct weft__tls *conn, bool *ret_again)
{
	int r;

	weft__tls_begin_reading(conn);
	r = weft__tls_result(conn, SSL_do_handshake(conn->ssl), ret_again);
	/* A peer that says good-bye in a handshake breaks it off. */
	if (r == 0) {
		weft__tls_say(conn->text, WEFT__TLS_TEXT_BYTES,
			      "the peer closed during the handshake");
		r = -ECONNRESET;
	}
	weft__tls_end_reading(conn);
	return r;
}

static bool was_interrupted(int r)
{
	return r == -ECANCELED || r == -ETIMEDOUT || r == -EPERM;
}

/* The alert of a peer that has closed may still be read after a write has
 * failed. */
static int handshake(struct weft__tls *conn)
{
	bool again = true;
	int r, sent;

	while (again) {
		r = step(conn, &again);
		sent = weft__tls_send(conn);
		if (r < 0)
			return r;
		if (was_interrupted(sent) || (sent < 0 && !again))
			return sent;
		if (!again || conn->shown_bytes)
			continue;
		r = weft__tls_await(conn);
		if (r == 0)
			weft__tls_say(conn->text, WEFT__TLS_TEXT_BYTES,
				      "the stream below ended during the "
				      "handshake");
		if (r <= 0)
			return sent < 0 ? sent : r < 0 ? r : -ECONNRESET;
	}
	return 0;
}

/* ---- The result ---------------------------------------------------------- */

static char *subject_of(X509 *certificate)
{
	BIO *out = BIO_new(BIO_s_mem());
	char *text = NULL, *data;
	long bytes;

	if (out && X509_NAME_print_ex(out, X509_get_subject_name(certificate),
				      0, XN_FLAG_RFC2253) >= 0) {
		bytes = BIO_get_mem_data(out, &data);
		text = OPENSSL_strndup(bytes ? data : "", (size_t)bytes);
	}
	BIO_free(out);
	return text;
}

/* Without memory for a text there is none. */
static void take_info(struct weft__tls *conn)
{
	const char *name =
		SSL_get_servername(conn->ssl, TLSEXT_NAMETYPE_host_name);
	X509 *certificate = SSL_get0_peer_certificate(conn->ssl);
	const unsigned char *alpn;
	unsigned alpn_bytes;

	SSL_get0_alpn_selected(conn->ssl, &alpn, &alpn_bytes);
	if (alpn_bytes)
		conn->alpn = OPENSSL_strndup((const char *)alpn, alpn_bytes);
	if (name)
		conn->server_name = OPENSSL_strdup(name);
	if (certificate)
		conn->peer_name = subject_of(certificate);
	conn->info = (struct weft_tls_info){
		.version = SSL_get_version(conn->ssl),
		.cipher = SSL_get_cipher_name(conn->ssl),
		.alpn = conn->alpn,
		.server_name = conn->server_name,
		.peer_name = conn->peer_name,
		.resumed = SSL_session_reused(conn->ssl),
	};
}

/* ---- The calls ----------------------------------------------------------- */

static struct weft__tls *conn_new(struct weft_stream *below, char *text)
{
	struct weft__tls *conn = OPENSSL_zalloc(sizeof(*conn));

	if (!conn)
		return NULL;
	pthread_mutex_init(&conn->lock, NULL);
	conn->below = below;
	conn->text = text;
	conn->said = WEFT__TLS_GOES_ON;
	return conn;
}

int weft__tls_shake_hands(struct weft_tls *tls,
			  struct weft_tls_context *context,
			  struct weft_stream *below,
			  const struct weft__tls_hello *hello)
{
	struct weft__tls_words *words = weft__tls_words(tls);
	struct weft__tls *conn;
	int r;

	memset(words, 0, sizeof(*words));
	if (!hello && !weft__tls_context_can_serve(context))
		return -EINVAL;
	conn = conn_new(below, words->text);
	if (!conn)
		return -ENOMEM;
	weft__tls_begin(conn);
	r = prepare(conn, context, hello);
	ERR_clear_error();
	weft__tls_end(conn);
	if (r == 0)
		r = handshake(conn);
	if (r < 0) {
		weft__tls_free(conn);
		return r;
	}
	weft__tls_begin(conn);
	take_info(conn);
	ERR_clear_error();
	weft__tls_end(conn);
	words->conn = conn;
	weft_stream_init_over(&tls->stream, &weft__tls_ops, conn);
	return 0;
}

int weft_tls_client(struct weft_tls *tls, struct weft_tls_context *context,
		    struct weft_stream *below, const char *host)
{
	const struct weft__tls_hello hello = { .host = host };

	return weft__tls_shake_hands(tls, context, below, &hello);
}

int weft_tls_server(struct weft_tls *tls, struct weft_tls_context *context,
		    struct weft_stream *below)
{
	return weft__tls_shake_hands(tls, context, below, NULL);
}

void weft_tls_info_get(const struct weft_tls *tls,
		       struct weft_tls_info *ret_info)
{
	*ret_info = weft__tls_words(tls)->conn->info;
}

const char *weft_tls_error(const struct weft_tls *tls)
{
	return weft__tls_words(tls)->text;
}

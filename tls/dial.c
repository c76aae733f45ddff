/* SPDX-License-Identifier: MIT */
/* Dialling: a connection to a host by its name, with TLS. */
#include <errno.h>
#include <string.h>
#include <weft/io.h>

#include "tls/connection.h"
#include "tls/handshake.h"
#include "tls/profile.h"

enum { HOST_BYTES = 256 };

static const struct weft_dial_tls_opts defaults = WEFT_DIAL_TLS_OPTS_INIT;

/* "name:port", "1.2.3.4:port" and "[::1%lo]:port" without the port, and what is
 * no part of the name in a certificate.  "": none, as of a path. */
static void host_of(const char *address, char host[HOST_BYTES])
{
	bool bracket = *address == '[';
	const char *from = address + bracket;
	size_t bytes = strcspn(from, bracket ? "]%" : ":");

	host[0] = '\0';
	if (*address == '/' || strncmp(address, "unix:", 5) == 0 ||
	    bytes >= HOST_BYTES)
		return;
	/* A complete name. */
	if (bytes > 0 && from[bytes - 1] == '.')
		bytes--;
	memcpy(host, from, bytes);
	host[bytes] = '\0';
}

static bool verifies(struct weft_tls_context *context)
{
	SSL_CTX *ssl = weft__tls_context_get(context);
	bool does = weft__tls_profile(ssl)->verify != WEFT_TLS_VERIFY_NONE;

	SSL_CTX_free(ssl);
	return does;
}

static int opts_check(const struct weft_dial_tls_opts *opts)
{
	if (opts->size != sizeof(*opts))
		return -EINVAL;
	for (int i = 0; i < 4; i++)
		if (opts->reserved_words[i])
			return -EINVAL;
	return 0;
}

/* The descriptor becomes a stream of the connection's. */
static int handshake_over(struct weft_tls *tls,
			  struct weft_tls_context *context, int fd,
			  const struct weft__tls_hello *hello)
{
	struct weft_stream *below = OPENSSL_malloc(sizeof(*below));
	int r;

	if (!below) {
		(void)weft_close(fd);
		return -ENOMEM;
	}
	weft_stream_init(below, fd);
	r = weft__tls_shake_hands(tls, context, below, hello);
	if (r == 0) {
		weft__tls_words(tls)->conn->owns_below = true;
		return 0;
	}
	(void)weft_stream_close(below);
	OPENSSL_free(below);
	return r;
}

int weft_dial_tls(struct weft_tls *tls, struct weft_tls_context *context,
		  const char *address, const struct weft_dial_tls_opts *opts)
{
	struct weft__tls_hello hello = { .host = NULL };
	char host[HOST_BYTES];
	int r;

	memset(weft__tls_words(tls), 0, sizeof(struct weft__tls_words));
	opts = opts ? opts : &defaults;
	r = address ? opts_check(opts) : -EINVAL;
	if (r < 0)
		return r;
	host_of(address, host);
	if (opts->host || host[0])
		hello.host = opts->host ? opts->host : host;
	/* Before it connects. */
	if (hello.host ? !*hello.host : verifies(context))
		return -EINVAL;
	if (opts->alpn && !weft__tls_alpn(opts->alpn, &hello.alpn))
		return -EINVAL;
	r = weft_dial(address, opts->dial);
	return r < 0 ? r : handshake_over(tls, context, r, &hello);
}

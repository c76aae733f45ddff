/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/tls.h>

#include "secure.h"

#define HANDSHAKE_NS WEFT_SEC(10)

/* A struct secure_context is a struct weft_tls_context. */
struct secure {
	struct weft_tls tls;
	struct weft_stream below;
};

struct secure_context *secure_context_new(const char *cert_file,
					  const char *key_file,
					  const char *alpn)
{
	struct weft_tls_opts opts = WEFT_TLS_OPTS_INIT;
	struct weft_tls_context *context;
	char error[200] = "";

	opts.cert_file = cert_file;
	opts.key_file = key_file;
	opts.alpn = alpn;
	opts.error = error;
	opts.error_bytes = sizeof(error);
	if (weft_tls_context_new(&opts, &context) == 0)
		return (struct secure_context *)context;
	fprintf(stderr, "%s: cannot use %s: %s\n",
		program_invocation_short_name, cert_file, error);
	return NULL;
}

void secure_context_free(struct secure_context *context)
{
	weft_tls_context_free((struct weft_tls_context *)context);
}

struct secure *secure_accept(struct secure_context *context, int fd)
{
	struct secure *secure = malloc(sizeof(*secure));
	int r = 0;

	if (!secure) {
		weft_close(fd);
		return NULL;
	}
	weft_stream_init(&secure->below, fd);
	WEFT_WITHIN(HANDSHAKE_NS)
		r = weft_tls_server(&secure->tls,
				    (struct weft_tls_context *)context,
				    &secure->below);
	if (r == 0)
		return secure;
	weft_stream_close(&secure->below);
	free(secure);
	return NULL;
}

struct weft_stream *secure_stream(struct secure *secure)
{
	return &secure->tls.stream;
}

int secure_shutdown(struct secure *secure)
{
	return weft_tls_shutdown(&secure->tls);
}

void secure_close(struct secure *secure)
{
	weft_stream_close(&secure->tls.stream);
	free(secure);
}

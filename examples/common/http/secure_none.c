/* SPDX-License-Identifier: MIT */
/*
 * In the place of secure.c, in a build without libweft-tls: without a context
 * no connection has TLS.
 */
#include <errno.h>
#include <stdio.h>

#include "secure.h"

struct secure_context *secure_context_new(const char *cert_file,
					  const char *key_file,
					  const char *alpn)
{
	(void)key_file;
	(void)alpn;
	fprintf(stderr, "%s: cannot use %s: built without libweft-tls\n",
		program_invocation_short_name, cert_file);
	return NULL;
}

void secure_context_free(struct secure_context *context)
{
	(void)context;
}

struct secure *secure_accept(struct secure_context *context, int fd)
{
	(void)context;
	weft_close(fd);
	return NULL;
}

struct weft_stream *secure_stream(struct secure *secure)
{
	(void)secure;
	return NULL;
}

int secure_shutdown(struct secure *secure)
{
	(void)secure;
	return 0;
}

void secure_close(struct secure *secure)
{
	(void)secure;
}

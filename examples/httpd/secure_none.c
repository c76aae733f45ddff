/* SPDX-License-Identifier: MIT */
/*
 * In the place of secure.c, in a build without libweft-tls: without a context
 * no connection has TLS.
 */
#include <stdio.h>

#include "secure.h"

struct secure_context *secure_context_new(const char *cert_file,
					  const char *key_file)
{
	(void)key_file;
	fprintf(stderr, "httpd: cannot use %s: built without libweft-tls\n",
		cert_file);
	return NULL;
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

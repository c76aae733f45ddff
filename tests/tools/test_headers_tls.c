/* SPDX-License-Identifier: MIT */
/*
 * Every macro of <weft/tls.h>, as in test_headers.c; a program of its own, as
 * it links with libweft-tls.  Run, it prints why it has no connection.
 */
#include <stdio.h>
#include <string.h>
#include <weft/tls.h>
#include <weft/weft.h>

#ifdef __cplusplus
#define AS(type, value) static_cast<type>(value)
#else
#define AS(type, value) ((type)(value))
#endif

static int64_t encrypted(void *arg)
{
	struct weft_stream below = WEFT_STREAM_INIT(-1);
	struct weft_dial_tls_opts dial = WEFT_DIAL_TLS_OPTS_INIT;
	struct weft_tls_opts opts = WEFT_TLS_OPTS_INIT;
	struct weft_tls_context *context;
	struct weft_tls tls;
	int r, *ret_error = AS(int *, arg);

	opts.flags = WEFT_TLS_NO_RESUMPTION;
	opts.version_min = WEFT_TLS_1_2;
	opts.version_max = WEFT_TLS_1_3;
	r = weft_tls_context_new(&opts, &context);
	if (r < 0)
		return r;
	/* Not an address. */
	if (weft_dial_tls(&tls, context, "", &dial) == 0)
		return weft_stream_close(&tls.stream);
	*ret_error = weft_tls_client(&tls, context, &below, "example.org");
	weft_tls_context_free(context);
	return *ret_error < 0 ? 0 : weft_stream_close(&tls.stream);
}

int main(void)
{
	int error = 0;

	if (weft_run(encrypted, &error, NULL) < 0)
		return 1;
	return printf("%s\n", strerror(-error)) < 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * https_get HOST:PORT CA.PEM [PATH] - prints what a server answers.
 *
 * Shows	a client that verifies its server, within a deadline, and copies
 *		the stream to standard output.
 * Run		build/examples/https_get localhost:8443 ca.pem
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/tls.h>
#include <weft/weft.h>

static int ask(struct weft_tls *tls, char **argv)
{
	struct weft_stream out = WEFT_STREAM_INIT(STDOUT_FILENO);
	char request[1000];
	int r;

	snprintf(request, sizeof(request),
		 "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", argv[3] ? argv[3] : "/",
		 argv[1]);
	r = weft_stream_put(&tls->stream, request, strlen(request));
	return r < 0 ? r :
		       weft_stream_copy(&out, &tls->stream, UINT64_MAX, NULL);
}

static int connect_and_ask(struct weft_tls_context *context, char **argv)
{
	struct weft_dial_tls_opts opts = WEFT_DIAL_TLS_OPTS_INIT;
	struct weft_tls tls;
	int r;

	opts.alpn = "http/1.1";
	r = weft_dial_tls(&tls, context, argv[1], &opts);
	if (r == 0) {
		r = ask(&tls, argv);
		weft_stream_close(&tls.stream);
	}
	if (r < 0)
		fprintf(stderr, "https_get: %s\n", weft_tls_error(&tls));
	return r;
}

static int64_t get(void *arg)
{
	char **argv = arg, error[200] = "";
	struct weft_tls_opts opts = WEFT_TLS_OPTS_INIT;
	struct weft_tls_context *context;
	int r;

	opts.ca_file = argv[2];
	opts.error = error;
	opts.error_bytes = sizeof(error);
	r = weft_tls_context_new(&opts, &context);
	if (r < 0) {
		fprintf(stderr, "https_get: %s\n", error);
		return r;
	}
	WEFT_WITHIN(WEFT_SEC(20))
		r = connect_and_ask(context, argv);
	weft_tls_context_free(context);
	return r;
}

int main(int argc, char **argv)
{
	int64_t r;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: https_get HOST:PORT CA.PEM [PATH]\n");
		return 2;
	}
	r = weft_run(get, argv, NULL);
	if (r < 0)
		fprintf(stderr, "https_get: %s\n", strerror((int)-r));
	return r < 0;
}

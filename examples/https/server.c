/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <stdio.h>
#include <string.h>

struct connection {
	struct weft_tls_context *context;
	int fd;
};

static int answer(struct weft_tls *tls)
{
	struct weft_tls_info info;
	char body[400], head[80];

	weft_tls_info_get(tls, &info);
	snprintf(body, sizeof(body), "%s %s alpn=%s name=%s%s\n", info.version,
		 info.cipher, info.alpn ? info.alpn : "",
		 info.server_name ? info.server_name : "",
		 info.resumed ? " resumed" : "");
	snprintf(head, sizeof(head),
		 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
		 strlen(body));
	weft_stream_put(&tls->stream, head, strlen(head));
	return weft_stream_put(&tls->stream, body, strlen(body));
}

static int64_t serve_one(void *arg)
{
	const struct connection *connection = arg;
	struct weft_stream below = WEFT_STREAM_INIT(connection->fd);
	const void *request;
	struct weft_tls tls;
	ssize_t n = 0;
	int r = 0;

	WEFT_WITHIN(WEFT_SEC(10))
		r = weft_tls_server(&tls, connection->context, &below);
	if (r < 0) {
		fprintf(stderr, "https: %s: %s\n", strerror(-r),
			weft_tls_error(&tls));
		return weft_stream_close(&below);
	}
	WEFT_WITHIN(WEFT_SEC(60))
		while ((n = weft_stream_until(&tls.stream, "\r\n\r\n", 4, 8192,
					      &request)) > 0 &&
		       answer(&tls) == 0)
			weft_stream_skip(&tls.stream, (size_t)n);
	return weft_stream_close(&tls.stream);
}

static int64_t reload(void *arg)
{
	struct server *server = *(struct server **)arg;
	int number, r;

	while ((r = weft_signal_wait(server->signals, &number)) == 0)
		if (weft_tls_context_set(server->context, NULL, &server->opts) <
		    0)
			fprintf(stderr, "https: %s\n", server->opts.error);
	return r;
}

int64_t serve(void *arg)
{
	struct server *server = arg;
	struct connection connection = { server->context, -1 };

	WEFT_SUPERVISE(tasks) {
		if (WEFT_GO(tasks, reload, server) < 0)
			return -1;
		while ((connection.fd = weft_accept(server->listener, NULL)) >=
		       0)
			if (WEFT_GO(tasks, serve_one, connection) < 0)
				weft_close(connection.fd);
	}
	return connection.fd;
}
